import { afterEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { EmptySandboxBackend } from '../../../../test/fakes/empty-sandbox-backend.js';
import { CredentialsPlace } from '../../../config/credentials-place.js';
import { parseConfig } from '../../../config/load-config.js';
import { Readiness } from '../../../health/readiness.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxBackend, SandboxBackendError } from '@slipway/sandboxes/sandbox-backend.js';
import { SandboxCallback } from '../sandbox-callback.js';
import { BackendReadiness } from './backend-readiness.js';

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

async function readinessOf(
  engine: EmptySandboxBackend,
  specs: object[],
  place: CredentialsPlace | null,
): Promise<BackendReadiness> {
  const testing = await Test.createTestingModule({
    providers: [
      BackendReadiness,
      Readiness,
      { provide: SandboxBackend, useValue: engine },
      { provide: SandboxCallback, useValue: { problem: null } },
      { provide: SandboxSpecs, useValue: { all: () => specs } },
      { provide: CredentialsPlace, useValue: place },
    ],
  }).compile();
  return testing.get(BackendReadiness);
}

it('leaves an engine alone for seconds that could not be prepared', async () => {
  let tries = 0;
  class UnreadyEngine extends EmptySandboxBackend {
    override async prepare(): Promise<never> {
      tries += 1;
      throw new SandboxBackendError('agent-sandbox is not installed');
    }
  }
  const backend = await readinessOf(new UnreadyEngine(), [], null);
  jest.useFakeTimers();
  const triesAfter = async (ms: number): Promise<number> => {
    jest.advanceTimersByTime(ms);
    expect(await backend.isReady()).toBe(false);
    return tries;
  };

  expect([await triesAfter(0), await triesAfter(4_999), await triesAfter(1)]).toEqual([1, 1, 2]);
});

it('says where credentials are, of stock agent servers too', async () => {
  const stock = { id: 'stock', program: { kind: 'command', command: ['stock'] }, runtime: null };
  const warned = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
  await (
    await readinessOf(new EmptySandboxBackend(), [stock], new CredentialsPlace(parseConfig({}, false)))
  ).ready();
  expect(warned).toHaveBeenCalledWith(expect.stringMatching(/^CREDENTIALS ARE IN SANDBOXES/));
});
