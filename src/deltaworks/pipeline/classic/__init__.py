"""The classic JSON form, translated into the native one."""
