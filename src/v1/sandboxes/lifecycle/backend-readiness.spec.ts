import { afterEach, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { EmptySandboxBackend } from '../../../../test/fakes/empty-sandbox-backend.js';
import { CredentialsPlace } from '../../../config/credentials-place.js';
import { Readiness } from '../../../health/readiness.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxBackend, SandboxBackendError } from '@slipway/sandboxes/sandbox-backend.js';
import { SandboxCallback } from '../sandbox-callback.js';
import { BackendReadiness } from './backend-readiness.js';

afterEach(() => {
  jest.useRealTimers();
});

it('leaves an engine alone for seconds that could not be prepared', async () => {
  let tries = 0;
  class UnreadyEngine extends EmptySandboxBackend {
    override async prepare(): Promise<never> {
      tries += 1;
      throw new SandboxBackendError('agent-sandbox is not installed');
    }
  }
  const testing = await Test.createTestingModule({
    providers: [
      BackendReadiness,
      Readiness,
      { provide: SandboxBackend, useValue: new UnreadyEngine() },
      { provide: SandboxCallback, useValue: { problem: null } },
      { provide: SandboxSpecs, useValue: { all: () => [] } },
      { provide: CredentialsPlace, useValue: null },
    ],
  }).compile();
  const backend = testing.get(BackendReadiness);
  jest.useFakeTimers();
  const triesAfter = async (ms: number): Promise<number> => {
    jest.advanceTimersByTime(ms);
    expect(await backend.isReady()).toBe(false);
    return tries;
  };

  expect([await triesAfter(0), await triesAfter(4_999), await triesAfter(1)]).toEqual([1, 1, 2]);
});
