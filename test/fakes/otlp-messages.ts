/** A field of a message of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/). */
interface Field {
  name: string;
  type: 'text' | 'hex' | 'varint' | 'fixed64' | 'double' | 'packed-fixed64' | 'packed-double' | Message;
  repeated?: true;
}

/** Fields by number; others are skipped. */
type Message = Readonly<Record<number, Field>>;

const ANY_VALUE: Message = {
  1: { name: 'stringValue', type: 'text' },
  2: { name: 'boolValue', type: 'varint' },
  3: { name: 'intValue', type: 'varint' },
  4: { name: 'doubleValue', type: 'double' },
};
const KEY_VALUE: Message = { 1: { name: 'key', type: 'text' }, 2: { name: 'value', type: ANY_VALUE } };
const RESOURCE: Field = {
  name: 'resource',
  type: { 1: { name: 'attributes', type: KEY_VALUE, repeated: true } },
};
const SPAN: Message = {
  1: { name: 'traceId', type: 'hex' },
  2: { name: 'spanId', type: 'hex' },
  4: { name: 'parentSpanId', type: 'hex' },
  5: { name: 'name', type: 'text' },
  6: { name: 'kind', type: 'varint' },
  7: { name: 'startTimeUnixNano', type: 'fixed64' },
  8: { name: 'endTimeUnixNano', type: 'fixed64' },
  9: { name: 'attributes', type: KEY_VALUE, repeated: true },
  15: { name: 'status', type: { 2: { name: 'message', type: 'text' }, 3: { name: 'code', type: 'varint' } } },
};
const NUMBER_POINT: Message = {
  4: { name: 'asDouble', type: 'double' },
  7: { name: 'attributes', type: KEY_VALUE, repeated: true },
};
const HISTOGRAM_POINT: Message = {
  4: { name: 'count', type: 'fixed64' },
  5: { name: 'sum', type: 'double' },
  6: { name: 'bucketCounts', type: 'packed-fixed64' },
  7: { name: 'explicitBounds', type: 'packed-double' },
  9: { name: 'attributes', type: KEY_VALUE, repeated: true },
};
const pointsOf = (name: string, point: Message): Field => ({
  name,
  type: {
    1: { name: 'dataPoints', type: point, repeated: true },
    2: { name: 'aggregationTemporality', type: 'varint' },
    3: { name: 'isMonotonic', type: 'varint' },
  },
});
const METRIC: Message = {
  1: { name: 'name', type: 'text' },
  2: { name: 'description', type: 'text' },
  5: pointsOf('gauge', NUMBER_POINT),
  7: pointsOf('sum', NUMBER_POINT),
  9: pointsOf('histogram', HISTOGRAM_POINT),
};

/** The two requests of OTLP, with names as its JSON form has them (https://github.com/open-telemetry/opentelemetry-proto). */
const REQUESTS: Readonly<Record<'traces' | 'metrics', Message>> = {
  traces: {
    1: {
      name: 'resourceSpans',
      repeated: true,
      type: {
        1: RESOURCE,
        2: { name: 'scopeSpans', repeated: true, type: { 2: { name: 'spans', type: SPAN, repeated: true } } },
      },
    },
  },
  metrics: {
    1: {
      name: 'resourceMetrics',
      repeated: true,
      type: {
        1: RESOURCE,
        2: {
          name: 'scopeMetrics',
          repeated: true,
          type: { 2: { name: 'metrics', type: METRIC, repeated: true } },
        },
      },
    },
  },
};

/** Reads a request of OTLP from its binary form. @throws RangeError for anything else */
export function decodeOtlp(signal: 'traces' | 'metrics', bytes: Buffer): Record<string, unknown> {
  return decode(REQUESTS[signal], bytes);
}

function decode(message: Message, bytes: Buffer): Record<string, unknown> {
  const decoded: Record<string, unknown> = {};
  for (let offset = 0; offset < bytes.length;) {
    const tag = readVarint(bytes, offset);
    const wire = Number(tag.value & 7n);
    const value = readValue(bytes, tag.end, wire);
    offset = value.end;
    const field = message[Number(tag.value >> 3n)];
    if (field !== undefined) {
      const read = interpret(field, value.content);
      const before = decoded[field.name];
      decoded[field.name] = field.repeated ? [...(Array.isArray(before) ? before : []), read] : read;
    }
  }
  return decoded;
}

function readVarint(bytes: Buffer, start: number): { value: bigint; end: number } {
  let value = 0n;
  for (let offset = start; ; offset += 1) {
    const byte = bytes.readUInt8(offset);
    value |= BigInt(byte & 0x7f) << BigInt(7 * (offset - start));
    if (byte < 0x80) {
      return { value, end: offset + 1 };
    }
  }
}

function readValue(bytes: Buffer, start: number, wire: number): { content: bigint | Buffer; end: number } {
  switch (wire) {
    case 0: {
      const { value, end } = readVarint(bytes, start);
      return { content: value, end };
    }
    case 1:
      return { content: bytes.subarray(start, start + 8), end: start + 8 };
    case 2: {
      const { value, end } = readVarint(bytes, start);
      return { content: bytes.subarray(end, end + Number(value)), end: end + Number(value) };
    }
    case 5:
      return { content: bytes.subarray(start, start + 4), end: start + 4 };
    default:
      throw new RangeError(`no wire type: ${wire}`);
  }
}

function interpret({ name, type }: Field, content: bigint | Buffer): unknown {
  if (typeof content === 'bigint') {
    return Number(content);
  }
  switch (type) {
    case 'text':
      return content.toString('utf8');
    case 'hex':
      return content.toString('hex');
    case 'fixed64':
      return String(content.readBigUInt64LE());
    case 'double':
      return content.readDoubleLE();
    case 'packed-fixed64':
      return eights(content).map((bytes) => String(bytes.readBigUInt64LE()));
    case 'packed-double':
      return eights(content).map((bytes) => bytes.readDoubleLE());
    case 'varint':
      throw new RangeError(`${name} is no number`);
    default:
      return decode(type, content);
  }
}

function eights(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length / 8 }, (_, index) => bytes.subarray(index * 8, index * 8 + 8));
}
