/**
 * For tests on {@code file:} only. It is in the jar because tests of whole processes load the jar
 * that is shipped, and because Hadoop requires a LocalFileSystem for that scheme, which a wrapper
 * around another file system is not. The API does not offer tables on that scheme.
 *
 * <p>It uses {@code timeline}, and no other package uses it.
 */
package io.hudioperator.testing;
