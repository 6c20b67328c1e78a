"""Policy: who may answer what, by rules of the protected branch and of this machine."""
