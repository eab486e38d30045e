package io.hudioperator.programs;

/**
 * Ends the code of a program that has asked for the end of its JVM. An Error, so that a program
 * which catches exceptions does not go on.
 */
final class ProgramExit extends Error {
    private static final long serialVersionUID = 1L;

    ProgramExit(int code) {
        super("exit code " + code, null, false, false);
    }
}
