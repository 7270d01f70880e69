/** Text of people and models: blocks of code as such, and everything else as it was written. */
export function Prose({ text }: { text: string }) {
  return text
    .split(/^(```[^]*?^```)$/m)
    .filter((part) => part.trim() !== '')
    .map((part, index) =>
      part.startsWith('```') ? (
        <pre key={index} tabIndex={0}>
          {part.replace(/^```.*\n/, '').replace(/\n?```$/, '')}
        </pre>
      ) : (
        <p key={index} className="prose">
          {part
            .trim()
            .split(/(`[^`\n]+`)/)
            .map((piece, number) => (number % 2 === 1 ? <code key={number}>{piece.slice(1, -1)}</code> : piece))}
        </p>
      ),
    );
}
