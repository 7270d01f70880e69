export interface SocketLimits {
  /** How long a client may wait with its first frame. */
  authTimeoutMs: number;
  pingMs: number;
  /** A client that takes nothing for so long is dropped. */
  stallMs: number;
  /** Per conversation. */
  maxSubscribers: number;
}

export const SOCKET_LIMITS: SocketLimits = {
  authTimeoutMs: 10_000,
  pingMs: 30_000,
  stallMs: 30_000,
  maxSubscribers: 100,
};
