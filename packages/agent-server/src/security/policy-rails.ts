import path from 'node:path';
import type { SecurityRisk } from '@slipway/agent-protocol/events.js';
import { parseShell, type ShellCommand, type ShellPipeline, type ShellWord } from './shell-parser.js';

const MAX_NESTING = 8;
const MAX_WRAPPERS = 20;
const MAX_ALIAS_WORDS = 50;
const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'ash', 'su']);
const INTERPRETERS = /^(?:python[\d.]*|perl|ruby|node|php|lua|deno|bun)$/;
/** These commands run what their arguments say. */
const SOURCES = new Set(['eval', 'source', '.']);
const FETCHERS = new Set(['curl', 'wget']);
const PRINTERS = new Set(['echo', 'printf']);
const CRITICAL = /^\/(?:\*?$|(?:etc|usr|var|home|boot|root|bin|sbin|lib|lib64)(?:$|[/*]))/;
const HOME = /^(?:~[\w.-]*|\$HOME|\$\{HOME\})(?:\/(?:\.{0,2}|\*|\.\.\/.*))?$/;
/** Writing there changes no disk. */
const HARMLESS_DEVICE = /^\/dev\/(?:null|zero|full|stdout|stderr|tty|fd\/.*|shm\/.*)$/;
/** They write to what they are given. */
const WRITERS = new Set(['tee', 'shred', 'truncate', 'wipefs', 'blkdiscard']);
const DISK = /^\/dev\/(?:[shv]d[a-z]|nvme|mmcblk|disk|mapper|dm-|loop|md)/;

const ENV_VALUES = ['-u', '-C', '--unset', '--chdir'];
const SPLIT_STRING = /^(?:-[a-z0]*S|--s[a-z-]*=?)/;
const NOTHING: ShellWord = { text: '', isDynamic: false, nested: [] };
const SSH_VALUES = '-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w'.split(' ');

/** Programs that run another one: options that take a value, and how many words precede the other program. */
const WRAPPERS: Readonly<Record<string, { values: string; operands?: number }>> = {
  sudo: { values: '-u -g -D -C -h -p -r -t -T -U --user --group --chdir' },
  doas: { values: '-u -C' },
  env: { values: ENV_VALUES.join(' ') },
  command: { values: '' },
  builtin: { values: '' },
  exec: { values: '-a' },
  nohup: { values: '' },
  setsid: { values: '' },
  time: { values: '-f -o' },
  timeout: { values: '-k -s --kill-after --signal', operands: 1 },
  nice: { values: '-n --adjustment' },
  ionice: { values: '-c -n -p' },
  stdbuf: { values: '-i -o -e' },
  chroot: { values: '--userspec --groups', operands: 1 },
  xargs: { values: '-I -n -P -L -d -E -s -a' },
  busybox: { values: '' },
  coproc: { values: '' },
  flock: { values: '-E -w --timeout', operands: 1 },
  runuser: { values: '-u -g -G' },
  strace: { values: '-e -o -p -s' },
  taskset: { values: '', operands: 1 },
  unshare: { values: '' },
  watch: { values: '-n --interval' },
};
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;

/** A command without what is before it: assignments, and programs that run another one. */
interface Call {
  /** Name of the program without its folder; null if it is not known before the program runs. */
  name: string | null;
  args: ShellWord[];
  command: ShellCommand;
}

function isOneOf(names: ReadonlySet<string>): (call: Call) => boolean {
  return ({ name }) => name !== null && names.has(name);
}

const isShell = isOneOf(SHELLS);
const isPrinter = isOneOf(PRINTERS);
const isFetcher = isOneOf(FETCHERS);

interface Findings {
  isHigh: boolean;
  isUncertain: boolean;
}

/**
 * The risk of texts that may be shell programs: HIGH for a download that goes into another program, a write to a
 * disk itself, or the deletion of a system folder or a home; UNKNOWN where that depends on the run.
 */
export function policyRailRisk(segments: readonly string[]): SecurityRisk {
  const findings: Findings = { isHigh: false, isUncertain: false };
  for (const segment of segments) {
    scan(segment, 0, findings);
  }
  if (findings.isHigh) {
    return 'HIGH';
  }
  return findings.isUncertain ? 'UNKNOWN' : 'LOW';
}

function scan(source: string, depth: number, findings: Findings): void {
  if (depth > MAX_NESTING) {
    findings.isUncertain = true;
    return;
  }
  const pipelines = parseShell(source);
  // A command inside a group is also one of the pipeline around the group.
  const commands = new Set(pipelines.flat(2));
  expandAliases(commands, depth, findings);
  for (const pipeline of pipelines) {
    scanPipeline(pipeline, depth, findings);
  }
  for (const command of commands) {
    const call = toCall(command);
    scanDisks(call, findings);
    scanDeletion(call, findings);
    scanScripts(call, depth, findings);
  }
}

function expandAliases(commands: Iterable<ShellCommand>, depth: number, findings: Findings): void {
  const aliases = new Map<string, ShellWord[]>();
  const expanded = ([first, ...args]: ShellWord[]): ShellWord[] =>
    first === undefined ? [] : [...(aliases.get(first.text) ?? [first]), ...args];
  for (const command of commands) {
    command.words = expanded(command.words);
    const definitions = command.words[0]?.text === 'alias' ? command.words.slice(1) : [];
    for (const { text, isDynamic } of definitions) {
      const [, name = '', program = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      scan(program, depth + 1, findings);
      // What follows it at its use belongs to its last command.
      const words = expanded(parseShell(program).flat(2).at(-1)?.words ?? []);
      findings.isUncertain ||= isDynamic || words.length > MAX_ALIAS_WORDS;
      aliases.set(name, words.slice(0, MAX_ALIAS_WORDS));
    }
  }
}

function scanPipeline(pipeline: ShellPipeline, depth: number, findings: Findings): void {
  for (const [index, stage] of pipeline.entries()) {
    const next = (pipeline[index + 1] ?? []).map(toCall);
    if (next.length === 0) {
      continue;
    }
    const calls = stage.map(toCall);
    const shell = next.find((call) => isShell(call) && scriptOf(call) === null);
    if (calls.some((call) => isFetcher(call) || (isPrinter(call) && call.args.some(fetches)))) {
      findings.isHigh = true;
    } else if (shell !== undefined) {
      const printer = calls.at(-1);
      const isStatic =
        printer !== undefined && isPrinter(printer) && printer.args.every(({ isDynamic }) => !isDynamic);
      if (isStatic) {
        scan(printer.args.map(({ text }) => text.replaceAll('\\n', '\n')).join(' '), depth + 1, findings);
      } else {
        findings.isUncertain = true;
      }
    } else if (calls.some(({ name }) => name === null) && next.some(({ name }) => name === null)) {
      findings.isUncertain = true;
    }
  }
}

function scanScripts(call: Call, depth: number, findings: Findings): void {
  const { name, args, command } = call;
  const words = [...command.words, ...command.files, ...(command.input ? [command.input] : [])];
  for (const program of words.flatMap(({ nested }) => nested)) {
    scan(program, depth + 1, findings);
  }
  const runs = isShell(call) || (name !== null && (SOURCES.has(name) || INTERPRETERS.test(name)));
  const isNameFetched = command.words[0] !== undefined && name === null && command.words.some(fetches);
  if ((runs && words.some(fetches)) || isNameFetched) {
    findings.isHigh = true;
    return;
  }
  const given =
    name === 'trap' ? (args[0] ?? null) : isShell(call) ? (scriptOf(call) ?? command.input) : null;
  const script = name === 'eval' ? joined(args) : given;
  if (script !== null && script.isDynamic) {
    findings.isUncertain = true;
  }
  if (script !== null) {
    scan(script.text, depth + 1, findings);
  }
  const executed = name === 'find' ? args.findIndex(({ text }) => /^-(?:exec|ok)(?:dir)?$/.test(text)) : -1;
  if (executed !== -1) {
    scanDeletion(toCall({ ...command, words: args.slice(executed + 1) }), findings);
  }
}

function scanDisks({ name, args, command }: Call, findings: Findings): void {
  if (name !== null && /^mkfs(?:\.|$)/.test(name)) {
    findings.isHigh = true;
  }
  const written = name === 'cp' ? args.slice(-1) : WRITERS.has(name ?? '') ? args : [];
  findings.isHigh ||= [...command.files, ...written].some(({ text }) =>
    DISK.test(path.posix.normalize(text)),
  );
  for (const { text, isDynamic } of name === 'dd' || name === null ? args : []) {
    const [, target] = /^of=(.*)$/is.exec(text) ?? [];
    const file = path.posix.normalize(target ?? '');
    if (target !== undefined && file.startsWith('/dev/') && !HARMLESS_DEVICE.test(file)) {
      findings.isHigh ||= name === 'dd';
      findings.isUncertain = true;
    }
    findings.isUncertain ||= name === 'dd' && isDynamic && (target !== undefined || !/^[a-z]+=/.test(text));
  }
}

function scanDeletion({ name, args }: Call, findings: Findings): void {
  if (name !== 'rm' && name !== null) {
    return;
  }
  const end = args.findIndex(({ text }) => text === '--');
  const before = end === -1 ? args : args.slice(0, end);
  const options = before.filter(({ text }) => text.startsWith('-'));
  if (!has(options, /^-[a-z]*r/i, '--recursive') || !has(options, /^-[a-zA-Z]*f/, '--force')) {
    return;
  }
  const targets = args.filter((word, index) => (end !== -1 && index > end) || !word.text.startsWith('-'));
  const isCritical = targets.some(({ text }) => HOME.test(text) || CRITICAL.test(normalized(text)));
  findings.isHigh ||= name === 'rm' && isCritical;
  findings.isUncertain ||= name === null || targets.some(({ isDynamic }) => isDynamic);
}

/** Whether options have one in its short form, or in its long one, which may be cut. */
function has(options: readonly ShellWord[], short: RegExp, long: string): boolean {
  return options.some(({ text }) =>
    text.startsWith('--') ? text.length > 2 && long.startsWith(text) : short.test(text),
  );
}

function normalized(file: string): string {
  const folded = path.posix.normalize(file.toLowerCase()).replace(/^\/+/, '/');
  return folded.length > 1 ? folded.replace(/\/$/, '') : folded;
}

function toCall(command: ShellCommand): Call {
  let words = withoutAssignments(command.words);
  for (let wrappers = 0; ; wrappers += 1) {
    const [first, ...args] = words;
    const name =
      first === undefined || first.isDynamic ? null : path.posix.basename(first.text).toLowerCase();
    const script = name === 'env' ? splitString(args) : name === 'ssh' ? remoteCommand(args) : null;
    if (script !== null) {
      return {
        name: 'sh',
        args: script.length > 0 ? [{ ...NOTHING, text: '-c' }, joined(script)] : [],
        command,
      };
    }
    const wrapper = name !== null && Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
    const asksOnly = name === 'command' && /^-[vV]/.test(args[0]?.text ?? '');
    if (wrappers === MAX_WRAPPERS) {
      return { name: null, args, command };
    }
    if (wrapper === undefined || args.length === 0 || asksOnly) {
      // A command that has no words has no program whose name could be unknown.
      return { name: first === undefined ? '' : name, args, command };
    }
    const rest = withoutAssignments(
      behindOptions(args, wrapper.values.split(' ')).slice(wrapper.operands ?? 0),
    );
    // Whatever it reads becomes further words.
    words = name === 'xargs' ? [...rest, { ...NOTHING, isDynamic: true }] : rest;
  }
}

/** What `env -S` makes a command of; null without that option. */
function splitString(args: ShellWord[]): ShellWord[] | null {
  const index = args.findIndex(({ text }) => SPLIT_STRING.test(text));
  const [option, ...rest] = args.slice(Math.max(index, 0));
  if (option === undefined || index === -1 || behindOptions(args.slice(0, index), ENV_VALUES).length > 0) {
    return null;
  }
  const text = option.text.replace(SPLIT_STRING, '');
  return text === '' ? rest : [{ ...option, text }, ...rest];
}

/** What `ssh` runs on the other host; options may stand behind the host, too. */
function remoteCommand(args: ShellWord[]): ShellWord[] {
  return behindOptions(behindOptions(args, SSH_VALUES).slice(1), SSH_VALUES);
}

function withoutAssignments(words: ShellWord[]): ShellWord[] {
  const index = words.findIndex(({ text }) => !ASSIGNMENT.test(text));
  return index === -1 ? [] : words.slice(index);
}

function behindOptions(args: ShellWord[], withValue: readonly string[]): ShellWord[] {
  let index = 0;
  for (let text = args[0]?.text ?? ''; text.startsWith('-') && text !== '-'; text = args[index]?.text ?? '') {
    index += withValue.includes(text) ? 2 : 1;
    if (text === '--') {
      break;
    }
  }
  return args.slice(index);
}

/** What a shell is given to run with `-c`; null if it reads a file or its input. */
function scriptOf({ args }: Call): ShellWord | null {
  const index = args.findIndex(({ text }) => /^[-+][a-z]*c[a-z]*$/i.test(text));
  const before = args.slice(0, Math.max(index, 0));
  const isOption = before.every(
    ({ text }, at) => /^[-+]/.test(text) || /^[-+]o$/i.test(before[at - 1]?.text ?? ''),
  );
  return index === -1 || !isOption ? null : (args[index + 1] ?? null);
}

function joined(words: readonly ShellWord[]): ShellWord {
  return {
    text: words.map(({ text }) => text).join(' '),
    isDynamic: words.some(({ isDynamic }) => isDynamic),
    nested: words.flatMap(({ nested }) => nested),
  };
}

function fetches({ nested }: ShellWord): boolean {
  return nested.some((program) => parseShell(program).flat(2).map(toCall).some(isFetcher));
}
