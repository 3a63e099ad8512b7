"""The names of Horovod, for scripts that were written for it: see gleaner.horovod.torch."""
