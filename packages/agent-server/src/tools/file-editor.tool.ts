import { isAbsolute, join } from 'node:path';
import { Readable } from 'node:stream';
import { z } from 'zod';
import type { FileEditorObservation } from '@slipway/agent-protocol/events.js';
import { clipText } from '../clipped-text.js';
import { WorkspaceFileError, WorkspaceFiles } from '../files/workspace-files.js';
import { type ToolView, withHome } from '../tool-view.js';
import { builtInTool, required, type Tool, ToolInputError } from './tool.js';

/** Longer contents are left out of the event: the log would hold every version of a large file twice. */
const MAX_EVENT_CONTENT = 200_000;
const MAX_HISTORY_CHARACTERS = 20_000_000;
/** Larger files must be handled in the terminal. */
const MAX_TEXT_FILE_BYTES = 5 * 1024 * 1024;

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
  path: string;
  text: string;
  before: string | null;
  after: string | null;
}

export function fileEditorTool(view: ToolView, workArea: string | null = null): Tool {
  const edits = new FileEdits();
  return builtInTool('FileEditor', {
    name: 'file_editor',
    description:
      'View, create and edit text files of the workspace. `view` shows a file with line numbers or lists a folder, ' +
      '`create` writes a new file or replaces one, `str_replace` replaces text that stands exactly once, `insert` puts ' +
      'text after a line, `undo_edit` takes the last edit of a file back.',
    needsConfirmation: true,
    schema,
    toAction: (input) => ({ kind: 'FileEditorAction', ...input }),
    run: async (input, { workingDir }) => {
      try {
        const file = new TextFile(view, [workingDir, ...(workArea === null ? [] : [workArea])], input.path);
        const { path, text, before, after } = await edits.execute(input, file);
        const changed = input.command !== 'view';
        return {
          ...observe(input, path, clipText(text), false),
          prev_exist: !changed || before !== null,
          old_content: changed ? unlessTooLong(before) : null,
          new_content: changed ? unlessTooLong(after) : null,
        };
      } catch (error) {
        if (error instanceof ToolInputError || error instanceof WorkspaceFileError) {
          return observe(input, input.path, describe(error, workingDir), true);
        }
        throw error;
      }
    },
  });
}

interface Edit {
  path: string;
  /** null: the file did not exist. */
  before: string | null;
  after: string;
}

/** Edits and those that can be taken back, the oldest of which are dropped when they grow too large. */
class FileEdits {
  readonly #edits: Edit[] = [];

  async execute(input: Input, file: TextFile): Promise<Outcome> {
    switch (input.command) {
      case 'view':
        return await file.view(input.view_range ?? null);
      case 'create':
        return await this.#write(file, await file.read(), required(input.file_text, 'file_text'));
      case 'str_replace': {
        const content = await file.existing();
        const old = required(input.old_str, 'old_str');
        return await this.#write(file, content, replaceUnique(content, old, input.new_str ?? ''));
      }
      case 'insert': {
        const content = await file.existing();
        const line = required(input.insert_line, 'insert_line');
        return await this.#write(
          file,
          content,
          insertAfter(content, line, required(input.new_str, 'new_str')),
        );
      }
      default:
        return await this.#undo(file);
    }
  }

  async #write(file: TextFile, before: string | null, after: string): Promise<Outcome> {
    const path = await file.write(after);
    this.#edits.push({ path, before, after });
    while (sizeOf(this.#edits) > MAX_HISTORY_CHARACTERS) {
      this.#edits.shift();
    }
    const text = before === null ? `Created ${path}.` : `Edited ${path}:\n${changedLines(before, after)}`;
    return { path, text, before, after };
  }

  /** Reverts the last edit of this tool, unless the file has changed since. */
  async #undo(file: TextFile): Promise<Outcome> {
    const path = await file.resolve();
    const edit = this.#edits.findLast((one) => one.path === path);
    if (edit === undefined) {
      throw new ToolInputError(`There is no edit of ${path} to take back.`);
    }
    const current = await file.read();
    if (current !== edit.after) {
      throw new ToolInputError(`${path} was changed since its last edit; nothing was taken back.`);
    }
    if (edit.before === null) {
      await file.remove();
    } else {
      await file.write(edit.before);
    }
    this.#edits.splice(this.#edits.indexOf(edit), 1);
    const text = edit.before === null ? `Removed ${path} again.` : `Took the last edit of ${path} back.`;
    return { path, text, before: current, after: edit.before };
  }
}

class TextFile {
  readonly #path: string;
  readonly #files: WorkspaceFiles;

  /** @param roots first that of the conversation */
  constructor(view: ToolView, roots: readonly [string, ...string[]], path: string) {
    const given = withHome(view, path);
    this.#path = isAbsolute(given) ? given : join(roots[0], given);
    this.#files = new WorkspaceFiles(view, roots);
  }

  async resolve(): Promise<string> {
    return await this.#files.resolve(this.#path);
  }

  async view(range: number[] | null): Promise<Outcome> {
    const found = await this.#files.view(this.#path, MAX_TEXT_FILE_BYTES);
    const { path } = found;
    if (found.kind === 'file') {
      return { path, text: numberedLines(decode(path, found.content), range), before: null, after: null };
    }
    const lines = [...found.names, ...(found.isCut ? ['[... more entries left out ...]'] : [])];
    return { path, text: lines.join('\n'), before: null, after: null };
  }

  async read(): Promise<string | null> {
    try {
      return await this.existing();
    } catch (error) {
      if (error instanceof WorkspaceFileError && error.failure === 'missing') {
        return null;
      }
      throw error;
    }
  }

  async existing(): Promise<string> {
    return decode(this.#path, await this.#files.read(this.#path, MAX_TEXT_FILE_BYTES));
  }

  async write(content: string): Promise<string> {
    return await this.#files.write(this.#path, Readable.from([Buffer.from(content)]));
  }

  async remove(): Promise<void> {
    await this.#files.remove(this.#path);
  }
}

/** @throws ToolInputError when the file is not text */
function decode(path: string, bytes: Uint8Array): string {
  if (bytes.includes(0)) {
    throw new ToolInputError(`${path} is a binary file.`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ToolInputError(`${path} is not UTF-8 text; use the terminal for it.`);
  }
}

function describe(error: WorkspaceFileError | ToolInputError, workspace: string): string {
  if (!(error instanceof WorkspaceFileError)) {
    return error.message;
  }
  switch (error.failure) {
    case 'outside':
      return `${error.message} ${workspace}.`;
    case 'large':
      return `${error.file} has ${error.size} bytes, more than the ${MAX_TEXT_FILE_BYTES} that this tool reads; use the terminal.`;
    default:
      return `${error.message}.`;
  }
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

function unlessTooLong(content: string | null): string | null {
  return content !== null && content.length <= MAX_EVENT_CONTENT ? content : null;
}

function sizeOf(edits: readonly Edit[]): number {
  return edits.reduce((sum, { before, after }) => sum + (before?.length ?? 0) + after.length, 0);
}

const CONTEXT_LINES = 4;

/** The mark that some editors put before the text; models neither see nor write it. */
const BOM = '\uFEFF';

/** Any form of line break matches. @throws ToolInputError when the text does not occur, or more than once */
export function replaceUnique(content: string, old: string, replacement: string): string {
  if (old === '') {
    throw new ToolInputError('old_str is empty.');
  }
  if (content.startsWith(BOM)) {
    return BOM + replaceUnique(content.slice(1), withoutBom(old), withoutBom(replacement));
  }
  const [wanted, text] = [withLf(old), withLf(content)];
  if (wanted === withLf(replacement) && old !== replacement) {
    // The edit changes the line breaks themselves.
    const at = findUnique(content, old);
    return content.slice(0, at) + replacement + content.slice(at + old.length);
  }
  const first = findUnique(text, wanted);
  const start = positionIn(content, first);
  const end = positionIn(content, first + wanted.length);
  const ending = lineEnding(content, start, end);
  return content.slice(0, start) + withEnding(replacement, ending) + content.slice(end);
}

function findUnique(content: string, old: string): number {
  const first = content.indexOf(old);
  if (first === -1) {
    throw new ToolInputError(
      'old_str does not occur in the file exactly like this; look at the file again, white space included.',
    );
  }
  if (content.indexOf(old, first + 1) !== -1) {
    const lines = occurrenceLines(content, old).join(', ');
    throw new ToolInputError(
      `old_str occurs in the file more than once (lines ${lines}); add lines around it until it is unique.`,
    );
  }
  return first;
}

/** Inserts lines after a line (0: before the first), with the line breaks around them. @throws ToolInputError */
export function insertAfter(content: string, line: number, text: string): string {
  if (content.startsWith(BOM)) {
    return BOM + insertAfter(content.slice(1), line, withoutBom(text));
  }
  const lines = splitLines(content);
  if (line > lines.length) {
    throw new ToolInputError(`insert_line is ${line}, but the file has ${lines.length} lines.`);
  }
  const before = lines.slice(0, line).join('');
  const after = lines.slice(line).join('');
  const ending = lineEnding(content, before.length - (lines[line - 1]?.length ?? 0), before.length);
  const added = ending === null ? text : withEnding(text, ending);
  const gap = before !== '' && !before.endsWith('\n') ? (ending ?? '\n') : '';
  const end = after !== '' && !text.endsWith('\n') ? (ending ?? '\n') : '';
  return before + gap + added + end + after;
}

function withoutBom(text: string): string {
  return text.startsWith(BOM) ? text.slice(1) : text;
}

function withLf(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

function withEnding(text: string, ending: string | null): string {
  return ending === null ? text : withLf(text).replaceAll('\n', ending);
}

/** Maps a position in the text with LF only to the text itself. */
function positionIn(content: string, position: number): number {
  let shift = 0;
  for (let at = content.indexOf('\r\n'); at !== -1; at = content.indexOf('\r\n', at + 2)) {
    if (at - shift >= position) {
      break;
    }
    shift += 1;
  }
  return position + shift;
}

/** The line break in a part of the text, else the next one, else the one before; null: there is none. */
function lineEnding(content: string, start: number, end: number): string | null {
  const inside = content.indexOf('\n', start);
  const at = inside !== -1 && inside < end ? inside : content.indexOf('\n', end);
  const found = at === -1 ? content.lastIndexOf('\n', end) : at;
  if (found === -1) {
    return null;
  }
  return content[found - 1] === '\r' ? '\r\n' : '\n';
}

/** Numbers the lines of a range, from 1; -1 as the last means the end. @throws ToolInputError for other lines */
export function numberedLines(content: string, range: readonly number[] | null): string {
  const lines = splitLines(withoutBom(content));
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

export function changedLines(before: string, after: string): string {
  let same = 0;
  while (same < after.length && after[same] === before[same]) {
    same += 1;
  }
  let sameEnd = 0;
  const limit = Math.min(after.length, before.length) - same;
  while (sameEnd < limit && after.at(-1 - sameEnd) === before.at(-1 - sameEnd)) {
    sameEnd += 1;
  }
  const count = Math.max(1, after.split('\n').length);
  const first = after.slice(0, same).split('\n').length;
  const last = after.slice(0, after.length - sameEnd).split('\n').length;
  const range = [Math.max(1, first - CONTEXT_LINES), Math.min(count, last + CONTEXT_LINES)];
  return after === '' ? '(empty)' : numberedLines(after, range);
}

function splitLines(content: string): string[] {
  return content.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function occurrenceLines(content: string, text: string): number[] {
  const lines: number[] = [];
  for (let at = content.indexOf(text); at !== -1 && lines.length < 10; at = content.indexOf(text, at + 1)) {
    lines.push(content.slice(0, at).split('\n').length);
  }
  return lines;
}
