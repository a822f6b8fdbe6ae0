"""All bounds that hold for any graph, as far as they take seconds."""

from __future__ import annotations

from pebble.bounds.bound import Bound
from pebble.bounds.inputs_outputs import inputs_outputs
from pebble.bounds.partition import partition
from pebble.bounds.spectral import spectral
from pebble.bounds.wavefront import wavefront
from pebble.graph import ComputationGraph
from pebble.rules import Rules

# The most vertices for which a bound is among those of `graph_bounds`; it can be called for more.
SPECTRAL, WAVEFRONT, PARTITION = 5000, 1000, 12


def graph_bounds(graph: ComputationGraph, cache: int, rules: Rules) -> list[Bound]:
    """Give those that hold under the rules, and take seconds, in no order.

    The trivial one always; without recomputation the spectral one up to 5000 vertices and the
    wavefront's up to 1000; without sliding that of the least partition up to 12. With partial
    computation the trivial one only.

    Examples
    --------
    >>> from pebble.classic import fft
    >>> [bound.name for bound in graph_bounds(fft(2), 4, Rules(recompute=False))]
    ['trivial', 'spectral', 'wavefront', 'partition']
    >>> [bound.name for bound in graph_bounds(fft(3), 4, Rules())]
    ['trivial']
    """
    found = [inputs_outputs(graph, rules)]
    if rules.partial:
        return found
    if not rules.recompute and len(graph) <= SPECTRAL:
        found.append(spectral(graph, cache, rules))
    if not rules.recompute and len(graph) <= WAVEFRONT:
        found.append(wavefront(graph, cache, rules))
    if not rules.sliding and len(graph) <= PARTITION:
        found.append(partition(graph, cache, rules))
    return found
