package io.hudioperator.timeline;

/**
 * A file system through which a table may be written: each call that can change a timeline passes
 * {@link TimelineGuard}.
 */
public interface Guarded {}
