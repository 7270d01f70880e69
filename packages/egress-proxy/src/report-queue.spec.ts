import { beforeEach, describe, expect, it } from '@jest/globals';
import { type EgressReports, MAX_REPORTED, type ReportedRequest } from './protocol.js';
import { ReportQueue } from './report-queue.js';
import { RefusedReportError } from './service-connection.js';

let sent: EgressReports['reports'][];
let report: (reports: EgressReports) => Promise<void>;
let queue: ReportQueue;

beforeEach(() => {
  sent = [];
  report = ({ reports }) => {
    sent.push(reports);
    return Promise.resolve();
  };
  queue = new ReportQueue({ report: (reports) => report(reports) });
});

function requested(path: string): ReportedRequest {
  return {
    at: '2026-11-29T00:00:00.000Z',
    host: 'api.example',
    port: 443,
    method: 'GET',
    path,
    denied: null,
    rule: null,
    phase: 'agent',
    status: 200,
    sentBytes: 0,
    receivedBytes: 0,
    durationMs: 1,
  };
}

function add(sandbox: string, count: number, prefix = ''): void {
  for (let index = 0; index < count; index += 1) {
    queue.add(sandbox, requested(`/${prefix}${index}`));
  }
}

const counts = () =>
  sent.map((reports) => reports.map(({ sandbox, requests }) => `${sandbox}: ${requests.length}`));

describe('ReportQueue', () => {
  it('sends what waits, of several sandboxes at once', async () => {
    add('one', 2);
    add('two', 1);
    await queue.flush();
    await queue.flush();
    expect(counts()).toEqual([['one: 2', 'two: 1']]);
  });

  it('keeps the newest of a sandbox while nothing can be sent, and makes reports of bounded size', async () => {
    const works = report;
    report = () => Promise.reject(new Error('away'));
    add('one', MAX_REPORTED + 10);
    add('two', 3);
    await queue.flush();
    report = works;
    await queue.flush();
    expect(counts()).toHaveLength(2);
    expect(counts().flat().toSorted()).toEqual(['one: 500', 'two: 3']);
    const ofOne = sent.flat().find(({ sandbox }) => sandbox === 'one');
    expect(ofOne?.requests[0]?.path).toBe('/10');
  });

  it('leaves what comes meanwhile to the next time', async () => {
    const works = report;
    report = async (reports) => {
      add('one', MAX_REPORTED);
      await works(reports);
    };
    add('one', 1);
    await queue.flush();
    expect(counts()).toEqual([['one: 1']]);
    expect(queue.size).toBe(MAX_REPORTED);
  });

  it('sends again what could not be sent, before what came later', async () => {
    const works = report;
    report = () => {
      add('one', 1, 'later-');
      return Promise.reject(new Error('away'));
    };
    add('one', 2);
    await queue.flush();
    expect(queue.size).toBe(3);
    report = works;
    await queue.stop(1_000);
    expect(sent[0]?.[0]?.requests.map(({ path }) => path)).toEqual(['/0', '/1', '/later-0']);
  });

  it('drops what the service refuses of one sandbox, and sends what it waits with', async () => {
    const works = report;
    report = async (reports) => {
      if (reports.reports.some(({ sandbox }) => sandbox === 'two')) {
        throw new RefusedReportError(422);
      }
      await works(reports);
    };
    ['one', 'two', 'three'].forEach((sandbox) => add(sandbox, 1));
    await queue.flush();
    expect(counts()).toEqual([['one: 1'], ['three: 1']]);
    expect(queue.size).toBe(0);
  });

  it('numbers calls of models in their order, and sends them again under the same numbers', async () => {
    const works = report;
    const call = {
      at: '2026-11-29T00:00:00.000Z',
      host: 'm.example',
      model: 'm',
      asked: null,
      answeredBy: null,
      input: 1,
      output: 1,
      cacheRead: 0,
      cacheWrite: 0,
      cost: null,
    };
    report = () => {
      queue.addCall('one', call);
      return Promise.reject(new Error('away'));
    };
    queue.addCall('one', call);
    queue.addCall('two', call);
    await queue.flush();
    report = works;
    await queue.stop(1_000);
    const numbers = sent[0]?.map(({ sandbox, calls }) => [sandbox, calls.map(({ number }) => number)]);
    expect(Object.fromEntries(numbers ?? [])).toEqual({ one: [1, 3], two: [2] });
  });

  it('bounds how many sandboxes wait', () => {
    for (let index = 0; index < 5_000; index += 1) {
      queue.add(`sandbox-${index}`, requested('/'));
    }
    expect(queue.size).toBe(4_096);
  });

  it('ends within its deadline', async () => {
    report = () => new Promise(() => undefined);
    add('one', 1);
    await queue.stop(1);
    expect(queue.size).toBe(0);
  });
});
