package io.hudioperator;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A TCP proxy in front of etcd that can swallow answers (requests still arrive) or everything. */
final class DropProxy implements AutoCloseable {
  enum Mode {
    PASS,
    SWALLOW_ANSWERS,
    BLACK_HOLE
  }

  private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  private final List<Socket> sockets = new CopyOnWriteArrayList<>();
  private final int target;
  private volatile Mode mode = Mode.PASS;

  DropProxy(int target) throws IOException {
    this.target = target;
    daemon(this::accept);
  }

  String endpoint() {
    return "http://127.0.0.1:" + listener.getLocalPort();
  }

  void mode(Mode next) {
    mode = next;
  }

  /** Cuts every connection: what waits for an answer learns that there will be none. */
  void cut() {
    sockets.forEach(DropProxy::close);
    sockets.clear();
  }

  private void accept() {
    try {
      while (true) {
        Socket in = listener.accept();
        Socket out = new Socket(InetAddress.getLoopbackAddress(), target);
        sockets.addAll(List.of(in, out));
        daemon(() -> pump(in, out, false));
        daemon(() -> pump(out, in, true));
      }
    } catch (IOException e) {
      cut();
    }
  }

  private void pump(Socket from, Socket to, boolean answers) {
    byte[] buffer = new byte[8192];
    try {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        if (mode == Mode.PASS || (mode == Mode.SWALLOW_ANSWERS && !answers)) {
          out.write(buffer, 0, n);
        }
      }
    } catch (IOException e) {
      // one side is gone: so is the other
    }
    close(from);
    close(to);
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
      // closed is what it should be
    }
  }

  @Override
  public void close() throws IOException {
    listener.close();
    cut();
  }
}
