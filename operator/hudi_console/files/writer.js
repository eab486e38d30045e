// A writer with its attempts.

import { ago, badge, conditions, fact, grid, h, history, link, parts, reasons, section, span, utc } from './dom.js';

function lasted(one) {
  if (!one.start) return '';
  return one.end ? span(Date.parse(one.end) - Date.parse(one.start)) : h('span', {}, 'began ', ago(one.start));
}


function facts({ writer, queue }) {
  return [
    h('h1', {}, writer.name, ' ', badge(writer.state, writer.tone)),
    h('dl', { class: 'facts' },
      fact('Table', writer.tableExists ? link('tables', writer.namespace, writer.table) : h('span', { class: 'problem' }, `${writer.table}: there is none`)),
      fact('Mode', writer.mode), fact('Operation', writer.operation), fact('Priority', writer.priority),
      fact('Suspended', writer.suspend ? 'yes' : null), fact('Records', writer.records), fact('Conflicts', writer.conflicts),
      fact('Last commit', writer.lastCommit ? ago(writer.lastCommit) : null),
      fact('Next attempt', writer.nextRetry ? `${utc(writer.nextRetry)} UTC` : null),
      fact('Next run', writer.nextSchedule ? `${utc(writer.nextSchedule)} UTC` : null),
      fact('In the queue', queue ? [`number ${queue.position ?? '?'}, since `, ago(queue.since), queue.blockedBy ? `: ${queue.blockedBy}` : ''] : null)),
  ];
}

const ATTEMPTS = ['Attempt', 'How it ended', 'Began (UTC)', 'Lasted', 'Ready after', 'Records', 'Conflicts', 'Pod', 'Message'];

function attempts({ attempts: all, earlier }) {
  const rows = all.map((one) => [
    `${one.number}${one.run ? ` (run ${one.run})` : ''}`,
    badge(one.class ?? (one.ready ? 'running' : 'starts'), one.tone, one.exitCode === null ? undefined : `exit code ${one.exitCode}`),
    one.start ? utc(one.start) : '', lasted(one),
    one.ready && one.start ? span(Date.parse(one.ready) - Date.parse(one.start)) : '',
    one.records, one.conflicts, [one.pod ?? '', one.executors ? h('div', { class: 'quiet small' }, `${one.executors} executors`) : null],
    [one.message ?? '', one.instants.length ? h('div', { class: 'quiet small' }, `commits ${one.instants.join(', ')}`) : null],
  ]);
  return section('Attempts', rows.length ? grid(ATTEMPTS, rows, { class: 'cards' }) : h('p', { class: 'quiet' }, 'None yet.'),
    earlier ? h('p', { class: 'quiet' }, `Earlier attempts: ${earlier.records ?? 0} records, ${earlier.conflicts ?? 0} conflicts.`) : null);
}

const CONFLICTS = ['When', 'Instant', 'Because of', 'Repeated as', 'File groups'];

export function conflicts(all, withWriter = false) {
  return section('Refused commits', grid(withWriter ? ['Writer', ...CONFLICTS] : CONFLICTS, all.map((one) => [
    ...(withWriter ? [one.writer] : []), ago(one.time), one.instant, one.with,
    one.yielded ? 'gave way' : one.retriedAs ?? 'not repeated', (one.fileGroups ?? []).join(', '),
  ]), { class: 'cards' }));
}

export function writerPage(main) {
  let draw = null;
  return {
    show(found) {
      if (!draw) {
        main.replaceChildren();
        draw = parts(main);
      }
      draw('facts', { writer: found.writer, queue: found.queue }, facts);
      draw('why', found.why, (why) => section('Why', h('ul', { class: 'why-tree' }, reasons(why))));
      draw('attempts', { attempts: found.attempts, earlier: found.earlier }, attempts);
      draw('conflicts', found.conflicts.length ? found.conflicts : null, (all) => conflicts(all));
      draw('conditions', found.writer.conditions, (all) => section('Conditions', conditions(all)));
      draw('history', [found.told, found.eventsHidden], ([told, hidden]) => section('History', history(told, hidden)));
    },
  };
}
