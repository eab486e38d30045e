"""Actions on a real cluster for the e2e tier and for campaigns: namespaces with tables and writers,
the node from outside, images with another clock.
"""
