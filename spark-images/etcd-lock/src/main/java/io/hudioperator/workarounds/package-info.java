/**
 * Defects of Hudi 1.2.0 that are repaired from outside. Each class says what is wrong, and goes when Hudi has repaired it.
 *
 * <p>It uses no other package of this module. Repairs that Hudi loads by a configured name are in the root. No invariant rests on it: without it
 * commits fail and connections are not given back.
 */
package io.hudioperator.workarounds;
