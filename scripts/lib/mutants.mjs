import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import swc from '@swc/core';
import ts from 'typescript';

const { SyntaxKind: Kind } = ts;

const OPERATORS = new Map([
  [Kind.LessThanToken, '<='],
  [Kind.LessThanEqualsToken, '<'],
  [Kind.GreaterThanToken, '>='],
  [Kind.GreaterThanEqualsToken, '>'],
  [Kind.EqualsEqualsEqualsToken, '!=='],
  [Kind.ExclamationEqualsEqualsToken, '==='],
  [Kind.AmpersandAmpersandToken, '||'],
  [Kind.BarBarToken, '&&'],
  [Kind.PlusToken, '-'],
  [Kind.MinusToken, '+'],
]);
const METHODS = new Map([
  ['some', 'every'],
  ['every', 'some'],
]);
/** What a program does depends neither on its types nor on its log, and a decorator describes rather than acts. */
const isIgnored = (node) =>
  ts.isTypeNode(node) ||
  ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node) ||
  ts.isImportDeclaration(node) ||
  ts.isExportDeclaration(node) ||
  ts.isDecorator(node) ||
  (ts.isCallExpression(node) && /\blogger\.\w+$/i.test(node.expression.getText()));

/**
 * Small errors, each `{ file, offset, length, original, replacement, kind, description }`: from each group of files in
 * proportion to its code, and as many of one kind as of another. They are shuffled, so any first part of them is a fair
 * sample.
 */
export function chooseMutants(root, groups, { seed, count }) {
  const random = randomNumbers(Number(seed));
  const sizeOf = (files) => files.reduce((sum, file) => sum + statSync(path.join(root, file)).size, 0);
  const total = sizeOf([...groups.values()].flat());
  const chosen = [...groups.values()].flatMap((files) => {
    const all = shuffled(
      files.flatMap((file) => mutantsOf(root, file)),
      random,
    );
    const byKind = [...Map.groupBy(all, ({ kind }) => kind).values()];
    return byKind
      .flatMap((some) => some.map((mutant, turn) => ({ mutant, turn })))
      .toSorted((a, b) => a.turn - b.turn)
      .values()
      .map(({ mutant }) => mutant)
      .filter((mutant) => isCompilable(mutated(readFileSync(path.join(root, mutant.file), 'utf8'), mutant)))
      .take(Math.round((Number(count) * sizeOf(files)) / total))
      .toArray();
  });
  return shuffled(chosen, random);
}

/** @returns the file's text with the error in it; undefined when it stands no longer where the mutant was made */
export function mutated(text, { offset, length, original, replacement }) {
  return text.slice(offset, offset + length) === original
    ? text.slice(0, offset) + replacement + text.slice(offset + length)
    : undefined;
}

function mutantsOf(root, file) {
  const text = readFileSync(path.join(root, file), 'utf8');
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
  const found = [];
  const add = (kind, node, replacement) => {
    const offset = node.getStart(tree);
    const original = text.slice(offset, node.end);
    const line = 1 + tree.getLineAndCharacterOfPosition(offset).line;
    const description = `line ${line}: ${kind}: ${shortened(original)} -> ${shortened(replacement)}`;
    found.push({ file, offset, length: original.length, original, replacement, kind, description });
  };
  const visit = (node) => {
    if (!isIgnored(node)) {
      mutate(node, add);
      ts.forEachChild(node, visit);
    }
  };
  visit(tree);
  return found;
}

/** Whether it is a program at all; its types do not matter. */
function isCompilable(text) {
  try {
    swc.parseSync(text, { syntax: 'typescript', decorators: true, target: 'es2022' });
    return true;
  } catch {
    return false;
  }
}

function mutate(node, add) {
  if (ts.isBinaryExpression(node)) {
    const { left, operatorToken } = node;
    if (OPERATORS.has(operatorToken.kind)) {
      add('operator', operatorToken, OPERATORS.get(operatorToken.kind));
    } else if (operatorToken.kind === Kind.QuestionQuestionToken) {
      add('no default', node, left.getText());
    }
  } else if (ts.isIfStatement(node)) {
    add('condition', node.expression, `!(${node.expression.getText()})`);
  } else if (node.kind === Kind.TrueKeyword || node.kind === Kind.FalseKeyword) {
    add('boolean', node, node.kind === Kind.TrueKeyword ? 'false' : 'true');
  } else if (ts.isStringLiteralLike(node)) {
    if (node.text !== '' && !isName(node)) {
      add('text', node, "''");
    }
  } else if (ts.isNumericLiteral(node)) {
    if (!isName(node)) {
      add('number', node, `${Number(node.text) + (node.pos % 2 === 0 ? 1 : -1)}`);
    }
  } else if (ts.isExpressionStatement(node)) {
    const { expression } = node;
    const call = ts.isAwaitExpression(expression) ? expression.expression : expression;
    if (ts.isCallExpression(call) && call.expression.kind !== Kind.SuperKeyword && !isIgnored(call)) {
      add('no call', node, ';');
    }
  } else if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
    const { expression: list, name } = node.expression;
    if (METHODS.has(name.text)) {
      add('method', name, METHODS.get(name.text));
    } else if (name.text === 'filter') {
      add('no filter', node, list.getText());
    }
  }
}

/** A key of an object, or what is looked up by it. */
function isName(node) {
  const { parent } = node;
  return (
    (ts.isPropertyAssignment(parent) && parent.name === node) ||
    (ts.isElementAccessExpression(parent) && parent.argumentExpression === node)
  );
}

function shortened(text) {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

function shuffled(list, random) {
  return list
    .map((item) => ({ item, order: random() }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ item }) => item);
}

/** Mulberry32: the same numbers for the same seed, everywhere. */
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
