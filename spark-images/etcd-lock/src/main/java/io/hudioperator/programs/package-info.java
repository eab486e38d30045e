/**
 * Programs with a main class of the JVM, and the jars that a user brings along: they are fetched
 * and checked before Spark starts, loaded behind the image's own classes, and run in this JVM. The
 * runtime calls these classes by py4j. Uses nothing of the other packages, and they do not use it.
 * The image's own classes are found first: a user's jar replaces none of those that keep the
 * invariants.
 */
package io.hudioperator.programs;
