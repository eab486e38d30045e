"""Tests of what runs the planners: loop, queue, routing, observation, order of actions."""
