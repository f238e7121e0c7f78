// SPDX-License-Identifier: GPL-2.0
/* twheel-relay: delays and retries records of Kafka. */
#include <argp.h>

#include "common/log.h"
#include "common/version.h"
#include "relay/loop.h"
#include "relay/options.h"

/* argp takes --version from here. */
const char *argp_program_version = "twheel-relay " TWHEEL_VERSION;

int main(int argc, char **argv)
{
	struct relay_options options;
	int status;

	relay_options_parse(&options, argc, argv);
	log_set_level(options.log_level);
	status = relay_run(&options);
	relay_options_free(&options);
	return status;
}
