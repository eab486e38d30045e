package io.hudioperator.support;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A TCP proxy in front of etcd that can drop answers (requests still arrive) or everything, or can
 * stall: nothing passes, no connection ends, and the data arrives once it resumes, as on a network
 * that loses packets and is repaired.
 */
public final class DropProxy implements AutoCloseable {
    public enum Mode {
        PASS,
        SWALLOW_ANSWERS,
        BLACK_HOLE
    }

    /** What a member of etcd sends to another member to identify itself when it connects. */
    private static final Pattern PEER = Pattern.compile("X-Server-From: ([0-9a-f]+)", Pattern.CASE_INSENSITIVE);

    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private final int target;
    private final String scheme;
    private volatile Mode mode = Mode.PASS;
    private Predicate<String> stalled = source -> false;

    DropProxy(int target, String scheme) throws IOException {
        this.target = target;
        this.scheme = scheme;
        daemon(this::accept);
    }

    public String endpoint() {
        return scheme + "://127.0.0.1:" + listener.getLocalPort();
    }

    public void mode(Mode next) {
        mode = next;
    }

    /**
     * From now on nothing passes on the connections from these sources: the id of an etcd member,
     * or empty for all other clients.
     */
    public synchronized void stall(Predicate<String> sources) {
        stalled = sources;
        notifyAll();
    }

    private synchronized void awaitFlow(Connection connection) {
        boolean interrupted = false;
        while (stalled.test(connection.source)) {
            try {
                wait();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Cuts every connection, so that a caller that waits for an answer learns that there will be
     * none.
     */
    public void cut() {
        sockets.forEach(DropProxy::close);
        sockets.clear();
    }

    private void accept() {
        try {
            while (true) {
                Socket in = listener.accept();
                daemon(() -> serve(in));
            }
        } catch (IOException e) {
            cut();
        }
    }

    private void serve(Socket in) {
        try {
            Socket out = new Socket(InetAddress.getLoopbackAddress(), target);
            in.setTcpNoDelay(true);
            out.setTcpNoDelay(true);
            sockets.addAll(List.of(in, out));
            Connection connection = new Connection();
            daemon(() -> pump(connection, out, in, true));
            pump(connection, in, out, false);
        } catch (IOException e) {
            close(in); // no member listens there now
        }
    }

    private void pump(Connection connection, Socket from, Socket to, boolean answers) {
        byte[] buffer = new byte[8192];
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                if (!answers && connection.source == null) {
                    connection.source = source(buffer, n);
                }
                awaitFlow(connection);
                if (mode == Mode.PASS || (mode == Mode.SWALLOW_ANSWERS && !answers)) {
                    out.write(buffer, 0, n);
                }
            }
        } catch (IOException e) {
            // one side is closed, so the other is closed too
        }
        awaitFlow(connection);
        close(from);
        close(to);
    }

    private static String source(byte[] bytes, int length) {
        Matcher m = PEER.matcher(new String(bytes, 0, length, StandardCharsets.ISO_8859_1));
        return m.find() ? m.group(1) : "";
    }

    private static void daemon(Runnable run) {
        Thread thread = new Thread(run, "drop-proxy");
        thread.setDaemon(true);
        thread.start();
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException e) {
            // already closed, as wanted
        }
    }

    @Override
    public void close() throws IOException {
        stall(source -> false);
        listener.close();
        cut();
    }

    /** The source of a connection; null while it has not sent anything. */
    private static final class Connection {
        private volatile String source;
    }
}
