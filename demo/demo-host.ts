import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { addCheck, addComment, checksOf, followedOf, push } from '../test/fakes/fake-followed.js';
import {
  checkRunDelivery,
  commentDelivery,
  type GithubDelivery,
} from '../test/fakes/fake-github.webhooks.js';
import type { FakeChangeRequest, FakeIssue, FakeRepository, FakeWorld } from '../test/fakes/fake-world.js';
import { type GitHttpServer, startGitHttpServer } from '../test/fakes/git-http-server.js';
import { commitsOf, DEMO_WORK } from './demo-work.js';

const run = promisify(execFile);
const REVIEWER = 'tom';

/** One of the world's git hosts: real repositories, checks that really run, and a colleague who reviews. */
export class DemoHost {
  readonly repositories: GitHttpServer;
  /** Takes what GitHub would send. */
  listener: (delivery: GithubDelivery) => Promise<unknown> = () => Promise.resolve();
  /** What the reviewer asks for when the checks of a branch pass, by branch. */
  readonly reviews = new Map<string, { text: string; path: string }>();
  private readonly world: FakeWorld;
  private readonly running = new Set<Promise<void>>();
  private problem: Error | null = null;

  private constructor(world: FakeWorld, repositories: GitHttpServer) {
    this.world = world;
    this.repositories = repositories;
  }

  /** @param username that git presents with the token of the world's user */
  static async start(world: FakeWorld, username: string, address: string): Promise<DemoHost> {
    const credentials = (presented: string | null): boolean =>
      presented === `${username}:${world.token.split(':').at(-1) ?? ''}`;
    let self: DemoHost;
    const onPush = (repository: string) => self.look(repository);
    const page = (wanted: string) => self.page(wanted);
    self = new DemoHost(world, await startGitHttpServer(credentials, address, { onPush, page }));
    world.onOpened = (change) => {
      Object.assign(change, { pages: self.repositories.origin });
      self.begin(() => self.look(placeOf(change)));
    };
    for (const item of [...world.changeRequests, ...world.issues]) {
      Object.assign(item, { pages: self.repositories.origin });
    }
    return self;
  }

  /** Makes what the world says real; resolves when all checks have run. */
  async fill(): Promise<void> {
    const { repositories, world } = this;
    const byRepository = Map.groupBy(commitsOf(world), ({ repository }) => repository);
    const fill = async ({ name, forkOf }: FakeRepository): Promise<void> => {
      if (forkOf !== undefined) {
        await repositories.fork(forkOf, name);
      }
      for (const { repository, branch, files } of byRepository.get(name) ?? []) {
        await repositories.commit(repository, branch, files);
      }
    };
    const [forks, others] = [true, false].map((isFork) =>
      world.repositories.filter(({ forkOf }) => (forkOf !== undefined) === isFork),
    );
    await Promise.all((others ?? []).map(fill));
    await Promise.all((forks ?? []).map(fill));
    for (const { repository, number, kind, branch, script, comment } of DEMO_WORK) {
      const change = world.changeRequests.find(
        (each) => each.repository === repository && each.number === number,
      );
      if (change && kind !== 'issue') {
        Object.assign(change, { sourceBranch: branch, targetBranch: 'main' });
        if (comment !== undefined) {
          addComment(change, REVIEWER, comment, { path: script, line: 1 });
        }
      }
    }
    await Promise.all(world.repositories.map(({ name }) => this.look(name, true)));
    await this.idle();
  }

  /** Resolves when no check runs. @throws Error when one could not */
  async idle(): Promise<void> {
    while (this.running.size > 0) {
      await Promise.all(this.running);
    }
    if (this.problem) {
      throw this.problem;
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.running);
    await this.repositories.close();
  }

  /** Shows what was pushed, and begins to check it. */
  private async look(name: string, isFirst = false): Promise<void> {
    const tips = await this.repositories.tips(name);
    const repository = this.world.repositories.find((each) => each.name === name);
    Object.assign(repository ?? {}, { branches: [...tips.keys()].filter((branch) => branch !== 'main') });
    for (const change of this.world.changeRequests) {
      const tip = placeOf(change) === name ? tips.get(change.sourceBranch ?? '') : undefined;
      if (tip !== undefined && (checksOf(change).length === 0 || tip !== followedOf(change).head)) {
        push(change, tip);
        this.begin(() => this.check(change));
        if (!isFirst) {
          await this.reviewAgain(change);
        }
      }
    }
  }

  /** What a browser shows of a pull request or an issue. */
  private async page(address: string): Promise<string | null> {
    const [, repository = '', number] = /^\/(.+?)\/(\d+)(?:\/checks\/\d+)?$/.exec(address) ?? [];
    const isWanted = (item: FakeIssue) => item.repository === repository && item.number === Number(number);
    const { world, repositories } = this;
    const change = world.changeRequests.find(isWanted);
    const item = change ?? world.issues.find(isWanted);
    if (!item) {
      return null;
    }
    const { sourceBranch = '' } = change ?? {};
    const range = `main...${sourceBranch}`;
    const { stdout: diff } = change
      ? await run('git', ['-C', repositories.folder(placeOf(change)), 'diff', range])
      : { stdout: '' };
    return pageWith(`${item.title} #${item.number}`, [
      ['Repository', repository],
      ...(change ? ([['Branch', sourceBranch]] as const) : []),
      ...(change?.followed?.checks ?? []).map((check) => [`Check ${check.state}`, check.log] as const),
      ...(change?.followed?.comments ?? []).map(({ author, body }) => [`${author} says`, body] as const),
      ...(change ? ([['Changes', diff]] as const) : []),
    ]);
  }

  /** The colleague takes every push for an answer. */
  private async reviewAgain(change: FakeChangeRequest): Promise<void> {
    followedOf(change).comments.forEach((comment) => Object.assign(comment, { resolved: true }));
    Object.assign(change, { unresolved: 'none' });
    if (change.conflicts === 'yes' && (await this.hasMerged(change))) {
      Object.assign(change, { conflicts: 'no' });
    }
  }

  private async hasMerged(change: FakeChangeRequest): Promise<boolean> {
    const { sourceBranch = '' } = change;
    const folder = this.repositories.folder(placeOf(change));
    const { stdout } = await run('git', ['-C', folder, 'rev-list', '--count', `${sourceBranch}..main`]);
    return stdout.trim() === '0';
  }

  /** Runs the check like a CI. */
  private async check(change: FakeChangeRequest): Promise<void> {
    const check = addCheck(change, 'check.sh');
    Object.assign(change, { checks: 'pending' });
    await this.listener(checkRunDelivery(change, check));
    const { log, passed } = await runChecks(this.repositories.folder(placeOf(change)), check.head);
    const review = this.reviews.get(change.sourceBranch ?? '');
    if (passed && review && followedOf(change).comments.length === 0) {
      const asked = addComment(change, REVIEWER, review.text, { path: review.path, line: 2 });
      await this.listener(commentDelivery(change, asked));
    }
    Object.assign(check, { log, state: passed ? 'passed' : 'failed' });
    if (check.head === followedOf(change).head) {
      Object.assign(change, { checks: passed ? 'passing' : 'failing' });
    }
    await this.listener(checkRunDelivery(change, check));
  }

  private begin(work: () => Promise<void>): void {
    const begun = work()
      .catch((error: unknown) => {
        this.problem ??= new Error('a git host of the demo could not do its part', { cause: error });
        process.stderr.write(`${this.problem.message}: ${String(error)}\n`);
      })
      .finally(() => this.running.delete(begun));
    this.running.add(begun);
  }
}

/** The repository that has the branch. */
function placeOf({ fork, repository }: FakeChangeRequest): string {
  return fork ?? repository;
}

function pageWith(title: string, parts: (readonly [name: string, text: string])[]): string {
  const shown = parts.map(([name, part]) => `<h2>${escaped(name)}</h2><pre>${escaped(part)}</pre>`);
  const style =
    '<meta name="color-scheme" content="light dark"><meta name="viewport" content="width=device-width">';
  return `<!doctype html><html lang="en">${style}<title>${escaped(title)}</title><h1>${escaped(title)}</h1>${shown.join('')}</html>`;
}

function escaped(part: string): string {
  return part.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

async function runChecks(repository: string, commit: string): Promise<{ log: string; passed: boolean }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-demo-ci-'));
  try {
    const command = 'git -C "$0" archive "$1" | tar -x && sh check.sh 2>&1';
    const child = spawn('sh', ['-c', command, repository, commit], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject).once('close', resolve);
    });
    const log = await text(child.stdout);
    return { log, passed: (await ended) === 0 };
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
