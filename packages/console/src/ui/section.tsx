import type { ReactNode } from 'react';

interface SectionProps {
  title: string;
  lead: string;
  children: ReactNode;
}

/** A part of a long page, with an address of its own (`#git-hosts`). */
export function Section({ title, lead, children }: SectionProps) {
  const id = idOf(title);
  return (
    <section id={id} className="section">
      <div>
        <h2>{title}</h2>
        <p className="hint">{lead}</p>
      </div>
      <div className="section-body">{children}</div>
    </section>
  );
}

/** Links to the parts of a page. */
export function Contents({ titles }: { titles: string[] }) {
  return (
    <nav aria-label="On this page" className="contents">
      {titles.map((title) => (
        <a key={title} href={`#${idOf(title)}`}>
          {title}
        </a>
      ))}
    </nav>
  );
}

function idOf(title: string): string {
  return title.toLowerCase().replaceAll(' ', '-');
}
