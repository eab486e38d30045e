"""Alerts, their runbooks and dashboards, checked and evaluated by promtool."""
