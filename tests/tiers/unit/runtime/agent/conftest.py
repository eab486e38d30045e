"""The agents of these tests have no Spark."""

from tests.support.world.no_executors import no_executors

__all__ = ("no_executors",)
