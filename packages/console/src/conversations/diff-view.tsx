import { structuredPatch } from 'diff';
import { Fragment } from 'react';

const CONTEXT_LINES = 3;
/** Above it, comparing and drawing would stop the page. */
const MOST_CHARACTERS = 400_000;
const MOST_LINES = 5_000;
/** Comparing takes as many steps as the square of the lines that differ. */
const MOST_EDITS = 4_000;
const MOST_MS = 500;

interface DiffProps {
  path: string;
  before: string | null;
  after: string | null;
  /** The place in the file is unknown, so lines have no numbers. */
  isPart?: boolean;
}

/** The lines that were removed and added, whole, with some around them. */
export function DiffView({ path, before, after, isPart = false }: DiffProps) {
  const [old, now] = [before ?? '', after ?? ''];
  const options = { context: CONTEXT_LINES, maxEditLength: MOST_EDITS, timeout: MOST_MS };
  const patch =
    old.length + now.length > MOST_CHARACTERS
      ? undefined
      : structuredPatch(path, path, old, now, undefined, undefined, options);
  const hunks = patch?.hunks ?? [];
  if (patch === undefined || hunks.reduce((sum, { lines }) => sum + lines.length, 0) > MOST_LINES) {
    return <p className="hint">The file is too large to be compared here.</p>;
  }
  return hunks.length === 0 ? (
    <p className="hint">No line differs.</p>
  ) : (
    <div className={isPart ? 'diff part' : 'diff'} role="group" aria-label={`Changes of ${path}`} tabIndex={0}>
      {hunks.map((hunk) => (
        <Fragment key={hunk.oldStart}>
          <div className="hunk">{isPart ? '…' : `Line ${hunk.oldStart} → ${hunk.newStart}`}</div>
          {hunk.lines.map((line, index) => (
            <Line key={`${index} ${line}`} line={line} />
          ))}
        </Fragment>
      ))}
    </div>
  );
}

const ELEMENTS: Record<string, 'ins' | 'del' | 'div'> = { '+': 'ins', '-': 'del', ' ': 'div' };

function Line({ line }: { line: string }) {
  const Element = ELEMENTS[line.slice(0, 1)];
  return Element === undefined ? <div className="hint">No newline at the end</div> : <Element>{line.slice(1)}</Element>;
}
