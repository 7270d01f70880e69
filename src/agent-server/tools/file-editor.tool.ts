import { rm, stat } from 'node:fs/promises';
import { z } from 'zod';
import type { FileEditorAction, FileEditorObservation, ToolDefinition } from '../../agent-protocol/events.js';
import { describeFailure } from '../log.js';
import { listFolder, readTextFile, workspacePath, writeTextFile } from './text-file.js';
import { clipText, SchemaTool, type ToolContext, ToolInputError } from './tool.js';

const MAX_CHARACTERS = 20_000_000;

interface Edit {
  path: string;
  /** null: there was no file. */
  before: string | null;
  after: string;
}

/** What edits can be taken back, newest first; the oldest are forgotten when they grow too many. */
class EditHistory {
  readonly #edits: Edit[] = [];
  #characters = 0;

  add(edit: Edit): void {
    this.#edits.push(edit);
    this.#characters += sizeOf(edit);
    while (this.#characters > MAX_CHARACTERS) {
      const oldest = this.#edits.shift();
      this.#characters -= oldest === undefined ? this.#characters : sizeOf(oldest);
    }
  }

  /** The last edit of a file, null when none is known. */
  last(path: string): Edit | null {
    return this.#edits.findLast((edit) => edit.path === path) ?? null;
  }

  remove(edit: Edit): void {
    const index = this.#edits.indexOf(edit);
    if (index !== -1) {
      this.#edits.splice(index, 1);
      this.#characters -= sizeOf(edit);
    }
  }
}

function sizeOf({ before, after }: Edit): number {
  return (before?.length ?? 0) + after.length;
}

/** Longer contents are not written into the event: the log would hold each version of a large file twice. */
const MAX_EVENT_CONTENT = 200_000;
const CONTEXT_LINES = 4;

const schema = z.object({
  command: z.enum(['view', 'create', 'str_replace', 'insert', 'undo_edit']),
  path: z.string().min(1).describe('Absolute, or relative to the workspace.'),
  file_text: z.string().nullish().describe('For `create`: the whole content.'),
  old_str: z.string().nullish().describe('For `str_replace`: text that stands exactly once in the file.'),
  new_str: z.string().nullish().describe('For `str_replace` and `insert`: the new text.'),
  insert_line: z
    .number()
    .int()
    .min(0)
    .nullish()
    .describe('For `insert`: the line after which new_str is put; 0 is before the first.'),
  view_range: z
    .array(z.number().int())
    .nullish()
    .describe('For `view` of a file: first and last line, from 1; -1 as the last means the end.'),
});

type Input = z.output<typeof schema>;

interface Outcome {
  text: string;
  before: string | null;
  after: string | null;
}

/** Shows and changes text files of the workspace. */
export class FileEditorTool extends SchemaTool<typeof schema> {
  readonly name = 'file_editor';
  readonly description =
    'View, create and edit text files of the workspace. `view` shows a file with line numbers or lists a folder, ' +
    '`create` writes a new file or replaces one, `str_replace` replaces text that stands exactly once, `insert` puts ' +
    'text after a line, `undo_edit` takes the last edit of a file back.';
  readonly needsConfirmation = true;
  readonly schema = schema;
  readonly #history = new EditHistory();

  toAction(input: Input): FileEditorAction {
    return { kind: 'FileEditorAction', ...input };
  }

  async run(input: Input, { workingDir }: ToolContext): Promise<FileEditorObservation> {
    try {
      const path = await workspacePath(workingDir, input.path);
      const { text, before, after } = await this.#execute(input, path);
      const changed = input.command !== 'view';
      return {
        ...observe(input, path, clipText(text), false),
        prev_exist: !changed || before !== null,
        old_content: changed ? shortEnough(before) : null,
        new_content: changed ? shortEnough(after) : null,
      };
    } catch (error) {
      const { code, message } = describeFailure(error);
      if (error instanceof ToolInputError || code !== '') {
        return observe(input, input.path, message, true);
      }
      throw error;
    }
  }

  definition(): ToolDefinition {
    return {
      kind: 'FileEditorTool',
      title: this.name,
      description: this.description,
      action_type: 'FileEditorAction',
      observation_type: 'FileEditorObservation',
    };
  }

  async #execute(input: Input, path: string): Promise<Outcome> {
    switch (input.command) {
      case 'view':
        return await view(path, input.view_range ?? null);
      case 'create':
        return await this.#write(path, await readTextFile(path), required(input.file_text, 'file_text'));
      case 'str_replace': {
        const content = await existing(path);
        const old = required(input.old_str, 'old_str');
        return await this.#write(path, content, replaceOnly(content, old, input.new_str ?? ''));
      }
      case 'insert': {
        const content = await existing(path);
        const line = required(input.insert_line, 'insert_line');
        return await this.#write(
          path,
          content,
          insertAfter(content, line, required(input.new_str, 'new_str')),
        );
      }
      default:
        return await this.#undo(path);
    }
  }

  async #write(path: string, before: string | null, after: string): Promise<Outcome> {
    await writeTextFile(path, after);
    this.#history.add({ path, before, after });
    const text = before === null ? `Created ${path}.` : `Edited ${path}:\n${changedPart(before, after)}`;
    return { text, before, after };
  }

  /** Only what this tool wrote, and only if the file is still as it left it. */
  async #undo(path: string): Promise<Outcome> {
    const edit = this.#history.last(path);
    if (edit === null) {
      throw new ToolInputError(`There is no edit of ${path} to take back.`);
    }
    const current = await readTextFile(path);
    if (current !== edit.after) {
      throw new ToolInputError(`${path} was changed since its last edit; nothing was taken back.`);
    }
    if (edit.before === null) {
      await rm(path);
    } else {
      await writeTextFile(path, edit.before);
    }
    this.#history.remove(edit);
    const text = edit.before === null ? `Removed ${path} again.` : `Took the last edit of ${path} back.`;
    return { text, before: current, after: edit.before };
  }
}

async function view(path: string, range: number[] | null): Promise<Outcome> {
  const stats = await stat(path).catch(() => null);
  if (stats?.isDirectory()) {
    return { text: await listFolder(path), before: null, after: null };
  }
  return { text: numberedLines(await existing(path), range), before: null, after: null };
}

async function existing(path: string): Promise<string> {
  const content = await readTextFile(path);
  if (content === null) {
    throw new ToolInputError(`${path} does not exist.`);
  }
  return content;
}

/** The lines around the first difference, as they are now. */
function changedPart(before: string, after: string): string {
  let same = 0;
  while (same < after.length && after[same] === before[same]) {
    same += 1;
  }
  let sameEnd = 0;
  const most = Math.min(after.length, before.length) - same;
  while (sameEnd < most && after.at(-1 - sameEnd) === before.at(-1 - sameEnd)) {
    sameEnd += 1;
  }
  const count = Math.max(1, after.split('\n').length);
  const first = after.slice(0, same).split('\n').length;
  const last = after.slice(0, after.length - sameEnd).split('\n').length;
  const range = [Math.max(1, first - CONTEXT_LINES), Math.min(count, last + CONTEXT_LINES)];
  return after === '' ? '(empty)' : numberedLines(after, range);
}

function observe(input: Input, path: string, text: string, isError: boolean): FileEditorObservation {
  return {
    kind: 'FileEditorObservation',
    content: [{ type: 'text', text }],
    is_error: isError,
    command: input.command,
    path,
    prev_exist: true,
  };
}

function shortEnough(content: string | null): string | null {
  return content !== null && content.length <= MAX_EVENT_CONTENT ? content : null;
}

function required<T>(value: T | null | undefined, name: string): T {
  if (value === null || value === undefined) {
    throw new ToolInputError(`This command needs ${name}.`);
  }
  return value;
}

/**
 * Replaces the only place where a text stands.
 *
 * @throws ToolInputError when it stands nowhere or more than once
 */
function replaceOnly(content: string, old: string, replacement: string): string {
  if (old === '') {
    throw new ToolInputError('old_str is empty.');
  }
  const first = content.indexOf(old);
  if (first === -1) {
    throw new ToolInputError(
      'old_str does not stand in the file exactly like this; look at the file again, white space included.',
    );
  }
  if (content.indexOf(old, first + 1) !== -1) {
    const lines = linesOf(content, old).join(', ');
    throw new ToolInputError(
      `old_str stands in the file more than once (lines ${lines}); add lines around it until it is unique.`,
    );
  }
  return content.slice(0, first) + replacement + content.slice(first + old.length);
}

/**
 * Puts lines after a line; 0 is before the first.
 *
 * @throws ToolInputError when the file has no such line
 */
function insertAfter(content: string, line: number, text: string): string {
  const lines = splitLines(content);
  if (line > lines.length) {
    throw new ToolInputError(`insert_line is ${line}, but the file has ${lines.length} lines.`);
  }
  const before = lines.slice(0, line).join('');
  const after = lines.slice(line).join('');
  const gap = before !== '' && !before.endsWith('\n') ? '\n' : '';
  const end = after !== '' && !text.endsWith('\n') ? '\n' : '';
  return before + gap + text + end + after;
}

/**
 * Lines with their numbers.
 *
 * @param range first and last line, from 1; -1 as the last means the end
 * @throws ToolInputError when the file has no such lines
 */
function numberedLines(content: string, range: readonly number[] | null): string {
  const lines = splitLines(content);
  const [first = 1, last = -1] = range ?? [];
  const end = last === -1 ? lines.length : last;
  const fits = first >= 1 && first <= Math.max(1, lines.length) && (last === -1 || last >= first);
  if (!fits || (range !== null && range.length !== 2)) {
    throw new ToolInputError(
      `view_range [${(range ?? []).join(', ')}] does not fit: the file has ${lines.length} lines.`,
    );
  }
  return lines
    .slice(first - 1, end)
    .map((line, index) => `${String(first + index).padStart(6)}\t${line.replace(/\r?\n$/, '')}`)
    .join('\n');
}

/** Each with its own end. */
function splitLines(content: string): string[] {
  return content.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function linesOf(content: string, text: string): number[] {
  const lines: number[] = [];
  for (let at = content.indexOf(text); at !== -1 && lines.length < 10; at = content.indexOf(text, at + 1)) {
    lines.push(content.slice(0, at).split('\n').length);
  }
  return lines;
}
