/**
 * For tests on {@code file:} alone. It is in the jar because the tests of whole processes load the jar that is shipped, and because Hadoop needs a
 * LocalFileSystem there, which no wrapper around another file system is. The API offers no table on that scheme.
 *
 * <p>It uses {@code timeline}, and no other package uses it.
 */
package io.hudioperator.testing;
