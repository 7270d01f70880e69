import { structuredPatch } from 'diff';
import { Fragment } from 'react';

const CONTEXT_LINES = 3;
/** Above it, comparing and drawing would stop the page. */
const MOST_CHARACTERS = 400_000;

interface DiffProps {
  path: string;
  before: string | null;
  after: string | null;
}

/** The lines that were removed and added, whole, with some around them. */
export function DiffView({ path, before, after }: DiffProps) {
  const [old, now] = [before ?? '', after ?? ''];
  if (old.length + now.length > MOST_CHARACTERS) {
    return <p className="hint">The file is too large to be compared here.</p>;
  }
  const { hunks } = structuredPatch(path, path, old, now, undefined, undefined, { context: CONTEXT_LINES });
  return hunks.length === 0 ? (
    <p className="hint">No line differs.</p>
  ) : (
    <div className="diff" role="group" aria-label={`Changes of ${path}`} tabIndex={0}>
      {hunks.map((hunk) => (
        <Fragment key={hunk.oldStart}>
          <div className="hunk">
            Line {hunk.oldStart} → {hunk.newStart}
          </div>
          {hunk.lines.map((line, index) => (
            <Line key={`${index} ${line}`} line={line} />
          ))}
        </Fragment>
      ))}
    </div>
  );
}

function Line({ line }: { line: string }) {
  const text = line.slice(1);
  switch (line[0]) {
    case '+':
      return <ins>{text}</ins>;
    case '-':
      return <del>{text}</del>;
    case ' ':
      return <div>{text}</div>;
    default:
      return <div className="hint">No newline at the end</div>;
  }
}
