const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;
const ago = new Intl.RelativeTimeFormat('en', { style: 'short' });
const exact = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' });
const clock = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hour12: false });

/** "3 hr. ago"; the whole time on hovering. */
export function Ago({ time }: { time: string }) {
  return <Moment time={time} text={agoText} />;
}

export function Clock({ time }: { time: string }) {
  return <Moment time={time} text={(date) => clock.format(date)} />;
}

/** Times of agents have no zone, and are UTC. */
function Moment({ time, text }: { time: string; text: (date: Date) => string }) {
  const date = new Date(/(?:Z|[+-]\d\d:\d\d)$/.test(time) ? time : `${time}Z`);
  return (
    <time dateTime={date.toISOString()} title={exact.format(date)}>
      {text(date)}
    </time>
  );
}

function agoText(date: Date): string {
  const seconds = (date.getTime() - Date.now()) / 1000;
  const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  return unit === undefined ? 'just now' : ago.format(Math.round(seconds / unit[1]), unit[0]);
}

/** "41 s", "3 min", "2 h 5 min". */
export function duration(seconds: number): string {
  const minutes = Math.round(seconds / 60);
  const text = minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return seconds < 60 ? `${Math.round(seconds)} s` : text;
}
