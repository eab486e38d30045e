package io.hudioperator.etcd;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * The certificate authorities of a PEM file. The kubelet replaces the file while the JVM runs, so
 * it is read at each handshake. If it cannot be read, or has no certificate, the authorities that
 * were read last stay trusted.
 */
final class TrustedAuthorities extends X509ExtendedTrustManager {
    private final Path file;
    private byte[] content;
    private X509ExtendedTrustManager trusting;

    TrustedAuthorities(Path file) throws IOException {
        this.file = file;
        this.content = Files.readAllBytes(file);
        this.trusting = trusting(content);
    }

    private static X509ExtendedTrustManager trusting(byte[] pem) throws IOException {
        try {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            CertificateFactory x509 = CertificateFactory.getInstance("X.509");
            for (Certificate authority : x509.generateCertificates(new ByteArrayInputStream(pem))) {
                store.setCertificateEntry("authority-" + store.size(), authority);
            }
            if (store.size() == 0) {
                throw new IOException("no certificate of an authority");
            }
            TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(store);
            for (TrustManager manager : factory.getTrustManagers()) {
                if (manager instanceof X509ExtendedTrustManager) {
                    return (X509ExtendedTrustManager) manager;
                }
            }
            throw new IOException("this JVM checks no certificates");
        } catch (GeneralSecurityException e) {
            throw new IOException("no certificates of authorities: " + e.getMessage(), e);
        }
    }

    private synchronized X509ExtendedTrustManager now() {
        try {
            byte[] found = Files.readAllBytes(file);
            if (!Arrays.equals(found, content)) {
                trusting = trusting(found);
                content = found;
            }
        } catch (IOException e) {
            // It is being replaced, or gone with the pod's volume.
        }
        return trusting;
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
        now().checkServerTrusted(chain, type, engine);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
        now().checkServerTrusted(chain, type, socket);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
        now().checkServerTrusted(chain, type);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
        now().checkClientTrusted(chain, type, engine);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
        now().checkClientTrusted(chain, type, socket);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
        now().checkClientTrusted(chain, type);
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
        return now().getAcceptedIssuers();
    }
}
