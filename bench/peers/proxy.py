"""A proxy that drops one answer of the server: the server has done the work, but the client gets no answer."""

import socket
import threading


class Proxy:
    def __init__(self, target):
        self.target = target
        self.left = 0  # the number of requests until the one whose answer is lost; 0 if none is lost
        self.hits = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def arm(self, number):
        """Drops the answer to one request, and cuts its connection. `number` counts the requests from now on."""
        self.hits, self.left = 0, number

    def close(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            lost = threading.Event()
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.requests, args=(client, server, lost), daemon=True).start()
            threading.Thread(target=self.answers, args=(client, server, lost), daemon=True).start()

    def requests(self, client, server, lost):
        try:
            while data := client.recv(65536):
                if self.left > 0:
                    self.left -= 1
                    if self.left == 0:
                        self.hits += 1
                        lost.set()
                server.sendall(data)
        except OSError:
            pass
        try:
            server.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    @staticmethod
    def answers(client, server, lost):
        try:
            while data := server.recv(65536):
                if lost.is_set():
                    break
                client.sendall(data)
        except OSError:
            pass
        for each in (client, server):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()
