/**
 * Workarounds for defects of Hudi 1.2.0. Each class describes its defect and is removed once Hudi
 * has fixed it.
 *
 * <p>It uses no other package of this module. Workarounds that Hudi loads by a configured name are
 * in the root. No invariant depends on this package: without it, commits fail and connections leak.
 */
package io.hudioperator.workarounds;
