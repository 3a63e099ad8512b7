"""Trains small models on real data over Gleaner, to compare the learning curves of modes; bench/learning_curves."""
