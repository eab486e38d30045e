"""Histories of concurrent transactions, checked for Adya's anomalies (`make history`)."""
