"""The built-in functions of SQL, one package per family."""
