"""Steps of training beside their limit: the GPU is timed waits, backward's hooks and communication are real."""
