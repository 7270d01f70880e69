import { createServer } from 'node:http';
import { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import { startListening } from '../../../../test/support/start-listening.js';
import { SandboxBackendError, SandboxBackendUnavailableError } from '../sandbox-backend.js';
import {
  connectEngine,
  engineEndpoint,
  engineFailure,
  engineStatus,
  withDeadline,
  isLocalEngine,
  isSocketEngine,
  isTemporaryStartFailure,
  openStandardInput,
} from './engine.js';

describe('engineEndpoint', () => {
  it.each([
    ['unix:///run/docker.sock', { socketPath: '/run/docker.sock', host: undefined, port: undefined }],
    [
      'npipe:////./pipe/docker_engine',
      { socketPath: '//./pipe/docker_engine', host: undefined, port: undefined },
    ],
    ['tcp://10.0.0.5:2375', { socketPath: undefined, host: '10.0.0.5', port: 2375 }],
    ['tcp://engine', { socketPath: undefined, host: 'engine', port: 2375 }],
    ['https://engine', { socketPath: undefined, host: 'engine', port: 2376, protocol: 'https' }],
    ['https://engine:2376', { socketPath: undefined, host: 'engine', port: 2376, protocol: 'https' }],
  ])('reads %s', (dockerHost, expected) => {
    expect(engineEndpoint(dockerHost)).toEqual(expected);
  });

  it.each(['/run/docker.sock', 'ssh://me@engine', 'unix://', 'tcp://'])('refuses %s', (dockerHost) => {
    expect(() => engineEndpoint(dockerHost)).toThrow('DOCKER_HOST must be');
  });
});

it.each([
  [null, true],
  ['unix:///run/docker.sock', true],
  ['tcp://127.0.0.1:2375', true],
  ['tcp://localhost:2375', true],
  ['tcp://10.0.0.5:2375', false],
  ['tcp://engine:2375', false],
])('isLocalEngine(%s) is %s', (dockerHost, expected) => {
  expect(isLocalEngine(dockerHost)).toBe(expected);
});

it.each([
  [null, true],
  ['unix:///run/docker.sock', true],
  ['tcp://127.0.0.1:2375', false],
  ['https://engine', false],
])('isSocketEngine(%s) is %s', (dockerHost, expected) => {
  expect(isSocketEngine(dockerHost)).toBe(expected);
});

describe('withDeadline', () => {
  it.each([
    ['never responds', false],
    ['stops in the middle of a response', true],
  ])('does not wait forever for an engine that %s', async (_, begins) => {
    const engine = createServer((_request, response) => {
      if (begins) {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{"NCPU":');
      }
    });
    const docker = connectEngine(`tcp://127.0.0.1:${await startListening(engine)}`);

    await expect(withDeadline(docker.info(), 20)).rejects.toThrow(
      'the Docker engine did not answer within 0.02 s',
    );
    engine.closeAllConnections();
    engine.close();
  });

  it('passes on what comes in time, failures included', async () => {
    await expect(withDeadline(Promise.resolve(1))).resolves.toBe(1);
    await expect(withDeadline(Promise.reject(new Error('no')))).rejects.toThrow('no');
  });
});

it('puts nothing into the standard input of a container before what is written to it', async () => {
  const engine = createServer();
  const docker = connectEngine(`tcp://127.0.0.1:${await startListening(engine)}`);
  const { promise: received, resolve, reject } = Promise.withResolvers<unknown>();
  // As Podman does, which passes on whatever follows the head of the request.
  engine.once('upgrade', (request, socket, head) => {
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
    text(socket).then((input) => resolve([request.url, head.toString('utf8') + input]), reject);
    socket.once('end', () => socket.end());
  });

  const input = await openStandardInput(docker, 'x');
  if (!(input instanceof Duplex)) {
    throw new Error('there is nothing to write to');
  }
  input.end('{"session_api_key":"k"}\n');
  expect(await received).toEqual([
    '/containers/x/attach?stream=true&stdin=true',
    '{"session_api_key":"k"}\n',
  ]);
  engine.close();
});

describe('engineFailure', () => {
  const FULL = 'mkdir /x: no space left on device';
  const failed = (message: string, code: string): Error => Object.assign(new Error(message), { code });
  /** As the library throws it: what the engine answered is in the text, and beside it where that was JSON. */
  const refused = (statusCode: number, text: string, message: string | null): Error =>
    Object.assign(new Error(`(HTTP code ${statusCode}) ${text}`), {
      statusCode,
      json: message && { message },
    });

  it.each([
    [refused(404, 'no such image - No such image: x ', 'No such image: x'), 'it failed: No such image: x'],
    [
      refused(500, 'server error - toomanyrequests: slow down ', null),
      'it failed: toomanyrequests: slow down',
    ],
    [failed('connect ENOENT /x', 'ENOENT'), /^it failed: no Docker engine answers \(ENOENT\)/],
    [failed('connect EACCES /x', 'EACCES'), /^it failed: this user may not use/],
    [
      refused(500, `server error - ${FULL}`, FULL),
      /^it failed: mkdir \/x: no space left on device \(the disk of the Docker engine is full: remove sandboxes/,
    ],
    [new Error('something else'), 'it failed: something else'],
  ])('%s', (cause, expected) => {
    const failure = engineFailure('it failed', cause);
    expect(failure.message).toMatch(expected);
    expect(failure.cause).toBe(cause);
  });

  it.each([
    ['ECONNREFUSED', SandboxBackendUnavailableError],
    ['ECONNRESET', SandboxBackendUnavailableError],
    ['EPIPE', SandboxBackendUnavailableError],
    ['ENOENT', SandboxBackendUnavailableError],
    ['EAI_AGAIN', SandboxBackendUnavailableError],
    ['EACCES', SandboxBackendError],
  ])('with the code %s is a %p', (code, expected) => {
    expect(engineFailure('it failed', failed('x', code))).toBeInstanceOf(expected);
  });

  it.each([new SandboxBackendError('said'), new SandboxBackendUnavailableError('said')])(
    'leaves its own errors alone: %p',
    (failure) => {
      expect(engineFailure('it failed', failure)).toBe(failure);
    },
  );
});

it('engineStatus is null for failures other than refusals', () => {
  expect(engineStatus(Object.assign(new Error('x'), { statusCode: 409 }))).toBe(409);
  expect(engineStatus(new Error('x'))).toBeNull();
});

it.each([
  [
    'OCI runtime create failed: runc create failed: unable to start container process: exec: "/sbin/docker-init": stat /sbin/docker-init: permission denied: unknown',
    true,
  ],
  ['OCI runtime create failed: exec: "node": executable file not found in $PATH', false],
  ['exec: "/entry": permission denied', false],
])('whether a start is tried again after: %s', (message, expected) => {
  expect(isTemporaryStartFailure(new Error(message))).toBe(expected);
});
