/**
 * Contract of this module, the operator and the agent: key names, states and phases, fields of
 * records, error codes, instant times, table ids, JSON, the options of inserts, the protocol's log
 * line.
 *
 * <p>Names and numbers come from {@code protocol.json}, which is in the jar beside these classes.
 * Nothing here does I/O on a store or uses etcd's client, and it uses no other package of this
 * module. It guarantees that each base path has one spelling and one table id (I1), that instant
 * times compare as Hudi compares them (I10), and that every error begins with its code.
 */
package io.hudioperator.contract;
