"""`bettong state`: the states that an application keeps."""
