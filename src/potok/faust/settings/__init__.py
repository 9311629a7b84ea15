"""Settings of an app, and the options of Faust."""
