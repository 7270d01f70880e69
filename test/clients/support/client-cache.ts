import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { NotInstallable } from '../client.js';

const run = promisify(execFile);
const INSTALL_TIMEOUT_MS = 600_000;
/** Minor versions of Python 3, the best one first. */
const PYTHONS = [13, 12, 11];
/** Newer than what some indexes have is wanted of it. */
const OVERRIDE = 'certifi\n';

/** A folder outside the repository with the clients of others, which stay there from run to run. */
export class ClientCache {
  constructor(
    readonly folder: string,
    private readonly print: (line: string) => void,
  ) {}

  /**
   * An npm package as it is published, without what it depends on.
   *
   * @param spec name and exact version; npm checks what it gets against the registry's digest
   * @returns the folder that holds it
   */
  async npmPackage(spec: string): Promise<string> {
    return this.once(spec, async (folder) => {
      const { stdout } = await this.run('npm', ['pack', '--silent', '--pack-destination', folder, spec]);
      const archive = stdout.trim().split('\n').at(-1) ?? '';
      await this.run('tar', ['-xzf', path.join(folder, archive), '-C', folder, '--strip-components=1']);
      await rm(path.join(folder, archive));
    });
  }

  /** An npm package with all that it depends on; returns its folder of programs. */
  async npmPrograms(spec: string): Promise<string> {
    const folder = await this.once(`programs ${spec}`, async (target) => {
      await this.run('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', target, spec]);
    });
    return path.join(folder, 'node_modules', '.bin');
  }

  /**
   * A Python environment with these packages, made by uv.
   *
   * @param oldest minor version of Python 3 that they run on
   * @returns the environment's folder of programs
   */
  async pythonPackages(name: string, specs: readonly string[], oldest = 12): Promise<string> {
    const folder = await this.once(`${name} ${specs.join(' ')}`, async (target) => {
      const python = await findPython(oldest);
      const uv = await this.uv(python);
      const override = path.join(target, 'override.txt');
      const environment = path.join(target, 'venv');
      // A relocatable one, as the folder gets its name at the end.
      await this.run(uv, ['venv', '--quiet', '--relocatable', '--python', python, environment]);
      await writeFile(override, OVERRIDE);
      const interpreter = path.join(environment, 'bin', 'python');
      const flags = ['--quiet', '--python', interpreter, '--override', override];
      await this.run(uv, ['pip', 'install', ...flags, ...specs]);
    });
    return path.join(folder, 'venv', 'bin');
  }

  /** uv in an environment of its own; the machine may have none. */
  private async uv(python: string): Promise<string> {
    const folder = path.join(this.folder, 'uv');
    const uv = path.join(folder, 'bin', 'uv');
    if (!existsSync(uv)) {
      await this.run(python, ['-m', 'venv', folder]);
      await this.run(path.join(folder, 'bin', 'pip'), ['install', '--quiet', 'uv']);
    }
    return uv;
  }

  /** Makes something in a folder of its own, whole or not at all. */
  private async once(what: string, make: (folder: string) => Promise<void>): Promise<string> {
    const folder = path.join(this.folder, what.replaceAll(/[^\w.=-]+/g, '_').slice(0, 100));
    if (existsSync(folder)) {
      return folder;
    }
    this.print(`installing ${what}`);
    await mkdir(this.folder, { recursive: true });
    const partial = await mkdtemp(path.join(this.folder, '.partial-'));
    try {
      await make(partial);
      await rename(partial, folder);
    } catch (error) {
      await rm(partial, { recursive: true, force: true, maxRetries: 10 });
      throw error instanceof NotInstallable
        ? error
        : new NotInstallable(`${what} could not be installed: ${lastLine(error)}`, { cause: error });
    }
    return folder;
  }

  private async run(program: string, args: readonly string[]): Promise<{ stdout: string }> {
    return run(program, args, {
      cwd: this.folder,
      // uv has authorities of its own, and would not ask those that this machine trusts.
      env: { UV_SYSTEM_CERTS: 'true', ...process.env },
      timeout: INSTALL_TIMEOUT_MS,
      maxBuffer: 1 << 26,
    });
  }
}

/** @throws NotInstallable when there is none that is new enough */
async function findPython(oldest: number): Promise<string> {
  const versions = path.join(process.env['PYENV_ROOT'] ?? path.join(homedir(), '.pyenv'), 'versions');
  const names = existsSync(versions) ? await readdir(versions) : [];
  const minors = PYTHONS.filter((minor) => minor >= oldest);
  const installed = minors.flatMap((minor) =>
    names
      .filter((name) => name.startsWith(`3.${minor}.`))
      .map((name) => path.join(versions, name, 'bin', 'python3')),
  );
  const given = process.env['PYTHON'];
  const candidates = [...installed, ...minors.map((minor) => `python3.${minor}`)];
  for (const candidate of given === undefined ? candidates : [given]) {
    const check = `import sys, ensurepip; sys.exit(0 if (3, ${oldest}) <= sys.version_info < (3, 14) else 1)`;
    if (
      await run(candidate, ['-c', check]).then(
        () => true,
        () => false,
      )
    ) {
      return candidate;
    }
  }
  throw new NotInstallable(
    `there is no Python 3.${oldest} to 3.13 with venv; the variable PYTHON may name one`,
  );
}

function lastLine(error: unknown): string {
  return (
    errorMessage(error)
      .trim()
      .split('\n')
      .findLast((line) => line.trim() !== '') ?? ''
  );
}
