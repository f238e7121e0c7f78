# What scdoc makes, with less: no empty paragraphs, no dash that becomes a hyphen when
# it is copied from the screen, and no name that is broken at the end of a line.
/^\.P$/		{ held = 1; next }
/^\.RE$/	{ print; before = $0; next }
held && !/^\.(SH|SS|TH)/ && before !~ /^\.(SH|SS|TH)/	{ print ".P" }
!/^(\.|\\h')/ {
	gsub(/-/, "\\-")
	gsub(/\\f[BI]/, "&\\%")
}
		{ held = 0; before = $0; print }
