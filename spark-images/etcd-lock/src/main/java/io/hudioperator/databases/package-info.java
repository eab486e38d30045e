/**
 * Connections to the databases of {@code source.jdbc}: of Spark's tasks, and of the reader itself.
 *
 * <p>It uses no other package, and no other package uses it: Spark finds the provider by {@code
 * META-INF/services}, and the runtime's Python calls {@code Databases}. User and password are read
 * from mounted files at each connection; no option, plan or log has them. A connection only reads,
 * and its session is in UTC.
 */
package io.hudioperator.databases;
