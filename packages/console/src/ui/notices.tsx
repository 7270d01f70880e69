import { useSyncExternalStore } from 'react';

type Notice = { id: number; kind: 'done' | 'error'; title: string; text: string };

const SHOWN_MS = 8_000;

let notices: readonly Notice[] = [];
let count = 0;
let redraw = (): void => undefined;

function show(next: readonly Notice[]): void {
  notices = next;
  redraw();
}

/** Says in a corner, for some seconds, what has been done or has failed. */
export function tell(title: string, text: string, kind: Notice['kind'] = 'done'): void {
  count += 1;
  const id = count;
  show([...notices.slice(-2), { id, kind, title, text }]);
  setTimeout(() => show(notices.filter((notice) => notice.id !== id)), SHOWN_MS);
}

/** The region is always there: screen readers hear only what is added to one that they know. */
export function Notices() {
  const shown = useSyncExternalStore(
    (reader) => {
      redraw = reader;
      return () => undefined;
    },
    () => notices,
  );
  return (
    <div className="notices" role="status">
      {shown.map(({ id, kind, title, text }) => (
        <div key={id} className={`notice ${kind}`}>
          <p className="notice-title">{title}</p>
          <p>{text}</p>
        </div>
      ))}
    </div>
  );
}
