/**
 * What this module, the operator and the agent must agree on: key names, error codes, instant times, table ids, JSON, the protocol's log line.
 *
 * <p>Names and numbers come from {@code protocol.json}, which lies beside these classes in the jar. Nothing here does I/O on a store or knows
 * etcd's client; it uses no other package of this module. Kept here: one spelling of a base path is one table id (I1), instant times compare
 * as Hudi compares them (I10), and every error begins with its code.
 */
package io.hudioperator.contract;
