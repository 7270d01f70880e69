type Extension = readonly [id: number, data: Buffer];

interface Hello {
  /** In one extension. */
  names: readonly string[];
  alpn?: readonly string[];
  more?: readonly Extension[];
}

/** One record with the first message of a TLS client (RFC 8446, 4.1.2). */
export function clientHello({ names, alpn, more = [] }: Hello): Buffer {
  const list = names.map((name) => Buffer.concat([Buffer.from([0]), sized(2, Buffer.from(name))]));
  const extensions: Extension[] = [
    ...(names.length > 0 ? [[0, sized(2, Buffer.concat(list))] as const] : []),
    ...(alpn
      ? [[16, sized(2, Buffer.concat(alpn.map((name) => sized(1, Buffer.from(name)))))] as const]
      : []),
    [43, Buffer.from([2, 3, 4])],
    ...more,
  ];
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 1),
    sized(1, Buffer.alloc(0)),
    sized(2, Buffer.from([0x13, 0x01])),
    sized(1, Buffer.from([0])),
    sized(
      2,
      Buffer.concat(
        extensions.map(([id, data]) => Buffer.concat([Buffer.from([id >> 8, id & 255]), sized(2, data)])),
      ),
    ),
  ]);
  return Buffer.concat([
    Buffer.from([22, 3, 1]),
    sized(2, Buffer.concat([Buffer.from([1]), sized(3, body)])),
  ]);
}

function sized(bytes: number, data: Buffer): Buffer {
  const length = Buffer.alloc(bytes);
  length.writeUIntBE(data.length, 0, bytes);
  return Buffer.concat([length, data]);
}
