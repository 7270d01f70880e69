import { once } from 'node:events';
import { createSocket, type Socket } from 'node:dgram';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { errorCode } from '../errors/error-message.js';
import { addressesOf, askNameServers } from './name-lookup.js';

/** Of the fields of a message (RFC 1035, 4.1.1), and in front of a question. */
const HEADER = 12;
const [ANSWERED, FAILED, UNKNOWN] = [0x8180, 0x8182, 0x8183];
/** Types of records, each with an address. */
const RECORDS = new Map([
  [1, Buffer.from([93, 184, 216, 34])],
  [28, Buffer.from('26064700000000000000000000000001', 'hex')],
]);

describe('name servers', () => {
  let socket: Socket;
  let server: string;
  let held: (() => void)[];

  beforeEach(async () => {
    held = [];
    socket = createSocket('udp4').on('message', (question, { port, address }) => {
      const name = question.toString('latin1', HEADER);
      const answer = (): void => socket.send(answerTo(question, name), port, address);
      if (name.includes('slow')) {
        held.push(answer);
      } else {
        answer();
      }
    });
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    server = `127.0.0.1:${socket.address().port}`;
  });

  afterEach(() => {
    socket.close();
  });

  it('are asked for addresses of both families, of which one is enough', async () => {
    const four = { address: '93.184.216.34', family: 4 };
    const six = { address: '2606:4700::1', family: 6 };
    expect(await askNameServers('both.example.com', [server])).toEqual([four, six]);
    expect(await askNameServers('only4.example.com', [server])).toEqual([four]);
    expect(await askNameServers('only6.example.com', [server])).toEqual([six]);
  });

  it.each([
    ['there is no such name', 'none', 'ENOTFOUND'],
    ['it has other records', 'only4-only6', 'ENOTFOUND'],
    ['it has no address of one family, and the server fails for the other', 'fails6', 'EAI_AGAIN'],
    ['no server can be asked', 'any', 'EAI_AGAIN'],
  ])('say as the system does that %s', async (_why, name, code) => {
    // There is none at the first port.
    const servers = [name === 'any' ? '127.0.0.1:1' : server];
    await expect(askNameServers(`${name}.example.com`, servers)).rejects.toMatchObject({ code });
  });

  it('that never answer for some names keep no other name waiting', async () => {
    const slow = Array.from({ length: 64 }, (_, index) =>
      askNameServers(`slow-${index}.example.com`, [server]),
    );
    // With the system's look-up, two would have occupied all threads that there are for it.
    expect(await askNameServers('both.example.com', [server])).toHaveLength(2);
    held.forEach((answer) => answer());
    await Promise.allSettled(slow);
  });
});

it.each([
  ['whom anybody may have made it, of name servers', false, 'query'],
  ['for the operator, of the system', true, 'getaddrinfo'],
])('a name is asked, %s', async (_how, isOfOperator, call) => {
  const failure: unknown = await addressesOf('nowhere.invalid', isOfOperator).catch(
    (error: unknown) => error,
  );
  expect(Object(failure).syscall).toMatch(call);
  expect(errorCode(failure)).toBeDefined();
});

it('finds names that are none of the internet in the files of the system', async () => {
  expect(await addressesOf('localhost', false)).toContainEqual(expect.objectContaining({ family: 4 }));
});

/** An answer with an address of the family that is asked for, unless the name says that there is none. */
function answerTo(question: Buffer, name: string): Buffer {
  const end = question.indexOf(0, HEADER) + 5;
  const type = question.readUInt16BE(end - 4);
  const record = RECORDS.get(type);
  const isKnown = !name.includes('none');
  const fails = name.includes('fails6');
  const hasRecord =
    isKnown && !fails && !(name.includes('only4') && type !== 1) && !(name.includes('only6') && type !== 28);
  const header = Buffer.alloc(HEADER);
  question.copy(header, 0, 0, 2);
  header.writeUInt16BE(fails && type === 28 ? FAILED : isKnown ? ANSWERED : UNKNOWN, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(record && hasRecord ? 1 : 0, 6);
  const told =
    record && hasRecord
      ? [Buffer.from([0xc0, HEADER, 0, type, 0, 1, 0, 0, 0, 60, 0, record.length]), record]
      : [];
  return Buffer.concat([header, question.subarray(HEADER, end), ...told]);
}
