"""Where records go outside the log, and what each place promises."""
