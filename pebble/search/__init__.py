"""The exact search behind `pebble.optimum`: positions, the steps between them, and A* over them.

A position is three sets, each the bits of one unsigned 64-bit integer: what is computed, what is
red and what is blue. `steps` says how a game goes on from a position, `astar` searches, `driver`
gives it memory and time, and `trail` writes what it found as moves.
"""
