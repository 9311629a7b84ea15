"""SQL at the keyboard: what is typed, where it is carried out, and how results are shown."""
