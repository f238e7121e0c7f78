// SPDX-License-Identifier: GPL-2.0
/*
 * The files of the page, which the program holds: page.html, page.css and page.js of the folder
 * page/, as they are. build.mk tells the assembler where that is.
 */
#include <string.h>

#include "common/util.h"
#include "metrics/files.h"

#define INCLUDE_FILE(name, file)			\
	__asm__(".pushsection .rodata\n"		\
		#name "_start:\n"			\
		".incbin \"" file "\"\n"		\
		#name "_end:\n"				\
		".byte 0\n"				\
		".popsection\n");			\
	extern const char name##_start[], name##_end[]

INCLUDE_FILE(page_html, "page.html");
INCLUDE_FILE(page_css, "page.css");
INCLUDE_FILE(page_js, "page.js");

static const struct site_file files[] = {
	{ "/", "text/html; charset=utf-8", page_html_start, page_html_end },
	{ "/page.css", "text/css; charset=utf-8", page_css_start, page_css_end },
	{ "/page.js", "text/javascript; charset=utf-8", page_js_start, page_js_end },
};

const struct site_file *site_file(const char *path)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (!strcmp(path, files[i].path))
			return &files[i];
	return NULL;
}
