import path from 'node:path';
import ts from 'typescript';

/** Groups of names of files that import each other, by way of others or not, if only for a type. */
export function circlesOf(files) {
  const known = new Set(files.map(({ name }) => name));
  const imports = files.map(({ name, tree }) => [
    name,
    importsOf(name, tree).filter((target) => known.has(target)),
  ]);
  return stronglyConnected(new Map(imports)).filter(({ length }) => length > 1);
}

function importsOf(name, tree) {
  return tree.statements
    .filter((node) => ts.isImportDeclaration(node) || ts.isExportDeclaration(node))
    .flatMap(({ moduleSpecifier }) => moduleSpecifier?.text ?? [])
    .map((target) =>
      target.startsWith('.')
        ? path.posix.join(path.posix.dirname(name), target)
        : target.replace(/^@slipway\/([\w-]+)\//, 'packages/$1/src/'),
    )
    .map((target) => target.replace(/\.js$/, '.ts'));
}

/** Tarjan's algorithm. */
function stronglyConnected(edges) {
  const [index, low, stack, components] = [new Map(), new Map(), [], []];
  const visit = (node) => {
    index.set(node, index.size);
    low.set(node, index.get(node));
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!index.has(next)) {
        visit(next);
        low.set(node, Math.min(low.get(node), low.get(next)));
      } else if (stack.includes(next)) {
        low.set(node, Math.min(low.get(node), index.get(next)));
      }
    }
    if (low.get(node) === index.get(node)) {
      components.push(stack.splice(stack.indexOf(node)));
    }
  };
  for (const node of edges.keys()) {
    if (!index.has(node)) {
      visit(node);
    }
  }
  return components;
}
